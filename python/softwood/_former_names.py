"""Former names of parameters: constructors and `set_params` accept them and warn with the current name."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping
from typing import Any


def to_current(
    params: Mapping[str, Any], former_names: Mapping[str, str], owner: str, *, stacklevel: int
) -> dict[str, Any]:
    """Return the parameters by their current names; warn of each former name.

    Parameters
    ----------
    params : dict of names and values
    former_names : dict of former names and current names
    owner : str
        Name of the estimator class, for messages.
    stacklevel : int
        Frame that the warnings point to, as in `warnings.warn` called by the caller of this function.
    """
    current: dict[str, Any] = {}
    for given, value in params.items():
        name = former_names.get(given, given)
        if name in current:
            raise TypeError(f"{owner} got `{name}` twice, once by a former name; give `{name}` alone")
        if name != given:
            message = f"parameter `{given}` of {owner} is now called `{name}`"
            warnings.warn(message, FutureWarning, stacklevel=stacklevel + 1)
        current[name] = value
    return current


def accept_in_init(cls: Any, former_names: Mapping[str, str]) -> None:
    """Make the constructor of a class accept former names; its signature keeps only the current names."""
    init = cls.__init__

    @functools.wraps(init)
    def wrapper(self: Any, *args: Any, **params: Any) -> None:
        init(self, *args, **to_current(params, former_names, type(self).__name__, stacklevel=2))

    cls.__init__ = wrapper
