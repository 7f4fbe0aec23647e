//! Tree export as text and as SVG, for trees written by hand.

use softwood::Key;
use softwood::explain::{
    Condition, ExportNode, ExportSplit, LeafValue, LinearTerm, TermValue, TreeExport,
};

fn number(weight: f64, mean: f64, sd: f64) -> ExportNode {
    ExportNode::new(weight, LeafValue::Number { mean, sd })
}

fn classes(weight: f64, probabilities: &[f64]) -> ExportNode {
    ExportNode::new(weight, LeafValue::Classes(probabilities.to_vec()))
}

fn split(
    mut node: ExportNode,
    column: &str,
    question: Condition,
    missing_right: bool,
    children: [usize; 2],
) -> ExportNode {
    let mut split = ExportSplit::new(column.to_owned(), question, children);
    split.missing_right = missing_right;
    split.gain = 0.1;
    node.split = Some(split);
    node
}

fn among(names: &[&str]) -> Condition {
    Condition::Among(names.iter().map(|&name| name.to_owned()).collect())
}

fn regression() -> TreeExport {
    TreeExport::new(
        "rent".to_owned(),
        None,
        vec![
            split(
                number(60.0, 412.31, 140.2),
                "area",
                Condition::Above(112.5),
                false,
                [1, 4],
            ),
            split(
                number(31.0, 301.0, 62.1),
                "side",
                among(&["north", "west"]),
                true,
                [2, 3],
            ),
            number(15.0, 290.05, 55.0),
            number(16.0, 320.0, 12.345_67),
            number(29.0, 531.0, 71.0),
        ],
    )
}

fn classification() -> TreeExport {
    let towns = [
        "Aachen", "Bonn", "Cham", "Dessau", "Erfurt", "Fulda", "Gotha", "Halle", "Jena", "Köln",
    ];
    let names = ["low & slow", "<middle>", "high"].map(str::to_owned);
    let nodes = vec![
        split(
            classes(100.0, &[0.5, 0.3, 0.2]),
            "town",
            among(&towns),
            true,
            [1, 2],
        ),
        classes(40.0, &[0.999, 0.0005, 0.0005]),
        split(
            classes(60.0, &[0.2, 0.5, 0.3]),
            "a column with a very long name indeed, <&>",
            Condition::Above(1e-7),
            false,
            [3, 4],
        ),
        classes(59.0, &[0.19, 0.51, 0.3]),
        classes(1.0, &[1.0, 0.0, 0.0]),
    ];
    TreeExport::new(
        "kind <&> \"quoted\"".to_owned(),
        Some(names.to_vec()),
        nodes,
    )
}

/// A tree of `n` leaves: the heaviest leaf is split at random, again and again.
fn grown(n: usize) -> TreeExport {
    let mut nodes = vec![number(10_000.0, 0.0, 10.0)];
    let draws = Key::from_seed(3).uniforms(3 * n);
    for (at, draw) in draws.chunks_exact(3).take(n - 1).enumerate() {
        let leaves = (0..nodes.len()).filter(|&at| nodes[at].split.is_none());
        let heaviest = leaves
            .max_by(|&a, &b| nodes[a].weight.total_cmp(&nodes[b].weight))
            .unwrap();
        let LeafValue::Number { mean, sd } = nodes[heaviest].answer else {
            panic!("a number")
        };
        let (weight, left) = (
            nodes[heaviest].weight,
            (0.1 + 0.8 * draw[0]) * nodes[heaviest].weight,
        );
        let step = sd * (0.2 + draw[1]);
        let children = [nodes.len(), nodes.len() + 1];
        nodes.push(number(left.round(), mean - step, 0.8 * sd));
        nodes.push(number((weight - left).round(), mean + step, 0.8 * sd));
        let question = Condition::Above((1000.0 * draw[2]).round() / 10.0);
        nodes[heaviest] = split(
            nodes[heaviest].clone(),
            &format!("column{}", at % 7),
            question,
            at % 2 == 0,
            children,
        );
    }
    TreeExport::new("y".to_owned(), None, nodes)
}

fn term(column: &str, value: TermValue, weight: f64) -> LinearTerm {
    LinearTerm::new(Some(column.to_owned()), value, weight, 0.2)
}

/// A tree of one linear split; soft with a `steepness`.
fn linear(steepness: Option<f64>) -> TreeExport {
    let number = TermValue::Number { if_missing: 40.0 };
    let towns =
        |names: &[&str]| TermValue::Among(names.iter().map(|&name| name.to_owned()).collect());
    let terms = vec![
        term("age", number.clone(), -0.312_345),
        term("town", towns(&["Bonn"]), 1.5),
        term("age", TermValue::Missing, -2.0),
        term("town", towns(&["Cham", "Gotha"]), 0.1),
        term("size", number, 0.01),
    ];
    let condition = Condition::Linear {
        terms,
        threshold: -12.25,
        steepness,
    };
    TreeExport::new(
        "fare".to_owned(),
        Some(vec!["low".to_owned(), "high".to_owned()]),
        vec![
            split(classes(9.0, &[0.5, 0.5]), "age", condition, true, [1, 2]),
            classes(4.0, &[0.75, 0.25]),
            classes(5.0, &[0.2, 0.8]),
        ],
    )
}

fn examples() -> Vec<(&'static str, TreeExport)> {
    let many = (0..12).map(|at| format!("class{at}")).collect();
    let leaf = TreeExport::new(
        "lonely".to_owned(),
        Some(many),
        vec![classes(7.0, &[1.0 / 12.0; 12])],
    );
    vec![
        ("regression", regression()),
        ("classification", classification()),
        ("leaf", leaf),
        ("linear", linear(None)),
        ("soft", linear(Some(4.0))),
        ("sixty", grown(60)),
    ]
}

#[test]
fn text_of_a_regression_tree() {
    let wanted = "\
rent: 412.3 ± 140.2, 60 rows
├─ area <= 112.5 or missing: 301 ± 62.1, 31 rows
│  ├─ side is not north or west: 290.1 ± 55, 15 rows
│  └─ side is north or west or missing: 320 ± 12.35, 16 rows
└─ area > 112.5: 531 ± 71, 29 rows
";
    assert_eq!(regression().text(), wanted);
}

#[test]
fn text_of_a_classification_tree() {
    let wanted = "\
kind <&> \"quoted\": low & slow 50%, <middle> 30%, high 20%, 100 rows
├─ town is not Aachen, Bonn, Cham, Dessau, Erfurt, Fulda or 4 more: low & slow >99%, <middle> <1%, high <1%, 40 rows
└─ town is Aachen, Bonn, Cham, Dessau, Erfurt, Fulda or 4 more or missing: <middle> 50%, high 30%, low & slow 20%, 60 rows
   ├─ a column with a very long name indeed, <&> <= 1e-7 or missing: <middle> 51%, high 30%, low & slow 19%, 59 rows
   └─ a column with a very long name indeed, <&> > 1e-7: low & slow 100%, <middle> 0%, high 0%, 1 row
";
    assert_eq!(classification().text(), wanted);
}

#[test]
fn text_of_linear_splits_shows_the_largest_terms() {
    let wanted = "\
fare: low 50%, high 50%, 9 rows
├─ -0.3123 age + 1.5 (town = Bonn) - 2 (age is missing) and 2 more <= -12.25: low 75%, high 25%, 4 rows
└─ -0.3123 age + 1.5 (town = Bonn) - 2 (age is missing) and 2 more > -12.25: high 80%, low 20%, 5 rows
";
    assert_eq!(linear(None).text(), wanted);
    let soft = linear(Some(4.0)).text();
    assert!(
        soft.contains(" and 2 more > -12.25 (soft, ± 0.25): high"),
        "{soft}"
    );
}

#[test]
fn json_of_a_linear_split_has_all_terms_and_a_steepness_only_if_it_is_soft() {
    let json = |tree: &TreeExport| serde_json::to_value(tree).unwrap();
    let split = &json(&linear(None))["nodes"][0]["split"];
    assert_eq!(split["column"], "age");
    let condition = &split["question"]["linear"];
    assert_eq!(condition["terms"].as_array().unwrap().len(), 5);
    assert_eq!(condition["terms"][1]["value"]["among"][0], "Bonn");
    assert_eq!(condition["terms"][2]["value"], "missing");
    assert!(condition.get("steepness").is_none());
    let soft = json(&linear(Some(4.0)));
    assert_eq!(
        soft["nodes"][0]["split"]["question"]["linear"]["steepness"],
        4.0
    );
}

/// Top left corner, width and height of the box of each node.
fn boxes(svg: &str) -> Vec<[f64; 4]> {
    let value = |line: &str, name: &str| -> f64 {
        let start = line.find(&format!(" {name}=\"")).unwrap() + name.len() + 3;
        line[start..].split('"').next().unwrap().parse().unwrap()
    };
    let lines = svg.lines().filter(|line| line.contains("rx=\"5\""));
    lines
        .map(|line| ["x", "y", "width", "height"].map(|name| value(line, name)))
        .collect()
}

#[test]
fn boxes_do_not_overlap_and_stay_inside_the_picture() {
    for (name, tree) in examples() {
        let svg = tree.svg();
        let boxes = boxes(&svg);
        assert_eq!(boxes.len(), tree.nodes.len(), "{name}");
        let size = |name: &str| -> f64 {
            let start = svg.find(&format!(" {name}=\"")).unwrap() + name.len() + 3;
            svg[start..].split('"').next().unwrap().parse().unwrap()
        };
        for (at, &[x, y, width, height]) in boxes.iter().enumerate() {
            assert!(
                x >= 0.0 && y >= 0.0 && x + width <= size("width") && y + height <= size("height")
            );
            for other in &boxes[..at] {
                let is_disjoint = x + width < other[0]
                    || other[0] + other[2] < x
                    || y + height < other[1]
                    || other[1] + other[3] < y;
                assert!(is_disjoint, "{name}: {other:?} and {:?}", boxes[at]);
            }
        }
    }
}

#[test]
fn special_characters_are_escaped_and_every_element_is_closed() {
    for (name, tree) in examples() {
        let svg = tree.svg();
        let mut open: Vec<&str> = Vec::new();
        for part in svg.split('<').skip(1) {
            let (tag, text) = part.split_once('>').unwrap();
            assert!(!text.contains('>') && !text.contains('"'), "{name}: {text}");
            if let Some(closed) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(closed), "{name}");
            } else if !tag.ends_with('/') {
                open.push(tag.split(' ').next().unwrap());
            }
        }
        assert!(open.is_empty(), "{name}: {open:?}");
        for entity in svg.split('&').skip(1) {
            let known = ["amp;", "lt;", "gt;", "quot;"]
                .iter()
                .any(|mark| entity.starts_with(mark));
            assert!(known, "{name}: &{entity}");
        }
    }
    assert!(classification().svg().contains("&lt;middle&gt;"));
}

#[test]
fn numbers_of_any_size_can_be_drawn() {
    for scale in [1e300, 1e-300, 0.0] {
        let mut tree = regression();
        for node in &mut tree.nodes {
            if let LeafValue::Number { mean, sd } = &mut node.answer {
                (*mean, *sd) = (*mean * scale, *sd * scale);
            }
        }
        let svg = tree.svg();
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{scale}");
    }
}

/// The fields of an export are public, so its children may be invalid; those are left out.
#[test]
fn invalid_children_are_left_out() {
    let mut tree = regression();
    tree.nodes[1].split.as_mut().unwrap().children = [0, 99];
    assert_eq!(tree.text().lines().count(), 3);
    assert_eq!(boxes(&tree.svg()).len(), 3);
    tree.nodes.clear();
    assert_eq!(tree.text(), "");
    assert!(tree.svg().ends_with("</svg>\n"));
}

/// Writes the pictures for visual inspection.
#[test]
#[ignore = "writes files"]
fn write_pictures() {
    let folder = std::env::temp_dir().join("softwood-tree-exports");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, tree) in examples() {
        std::fs::write(folder.join(format!("{name}.svg")), tree.svg()).unwrap();
    }
}
