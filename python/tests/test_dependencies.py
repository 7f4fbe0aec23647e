"""The check of dependencies evaluates licences as SPDX does and names what breaks deny.toml."""

import sys
from pathlib import Path

import pytest

if sys.version_info < (3, 11):
    pytest.skip("tomllib came with Python 3.11", allow_module_level=True)

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from check_dependencies import CRATES_IO, is_allowed, problems


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("MIT", True),
        ("GPL-3.0", False),
        ("GPL-3.0 OR MIT", True),
        ("MIT AND GPL-3.0", False),
        ("(GPL-3.0 OR MIT) AND Zlib", True),
        ("GPL-3.0 OR MIT AND GPL-2.0", False),
        ("Unlicense/MIT", True),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("Apache-2.0", False),
    ],
)
def test_licences(expression, expected):
    assert is_allowed(expression, {"MIT", "Zlib", "Apache-2.0 WITH LLVM-exception"}) is expected


def test_problems_name_the_crate():
    config = {"licenses": {"allow": ["MIT"]}, "bans": {"deny": [{"name": "bad", "reason": "abandoned"}]}}
    good = {"name": "good", "version": "1.0.0", "license": "MIT", "source": CRATES_IO}
    bad = {"name": "bad", "version": "2.0.0", "license": None, "source": "git+https://example.org/bad"}
    assert problems({"packages": [good]}, config) == []
    found = problems({"packages": [good, bad]}, config)
    assert [line.split(":")[0] for line in found] == ["bad 2.0.0"] * 3
