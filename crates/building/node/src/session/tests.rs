//! Sessions with nodes that answer as a test says.

use super::*;
use evb_experiment::Experiment;
use std::collections::BTreeSet;
use std::collections::VecDeque;

const FILE: &str = r#"
trigger = { type = "free-running", events = 100 }
readout = { units = 2, source = { type = "fixed", size = "100 B" } }
builder = { units = 2 }
"#;

/// Nodes of which some cannot take the first experiment that they are asked about, and any other. All answers of a
/// question are on their way when it has been asked.
#[derive(Default)]
struct AnsweringNodes {
    notices: VecDeque<(NodeId, Notice)>,
    refuse: Vec<NodeId>,
}

impl NodeGroup for AnsweringNodes {
    fn gather(&mut self, _: &Arc<Blueprint>, _: &[NodeId], _: &mut dyn Observer) -> Result<(), NodeError> {
        Ok(())
    }

    fn ask(&mut self, blueprint: &Blueprint, question: u64) -> BTreeSet<String> {
        let refuse = std::mem::take(&mut self.refuse);
        let nodes = (0..blueprint.plan.building.nodes()).map(NodeId);
        let against = |node| refuse.contains(&node).then(|| NodeError::new(format!("question {question}")));
        self.notices.extend(nodes.clone().map(|node| (node, Notice::Checked { question, against: against(node) })));
        nodes.map(|node| blueprint.plan.building.node_name(node)).collect()
    }

    fn order(&mut self, _: NodeId, _: Order, _: Option<&crate::run_info::RunInfo>) -> Result<(), NodeError> {
        Ok(())
    }

    fn notice(&mut self, _: Duration, _: &mut dyn Observer) -> Result<Option<(NodeId, Notice)>, NodeError> {
        Ok(self.notices.pop_front())
    }

    fn fate(&mut self, _: NodeId) -> Option<String> {
        None
    }

    fn patience(&self) -> Duration {
        Duration::ZERO
    }

    fn transport(&self, _: &Plan) -> &'static str {
        "test"
    }
}

fn plan(events: u64) -> (Plan, String) {
    let set = [format!("trigger.events={events}")];
    let experiment = Experiment::parse(FILE, "test.toml", &set).unwrap_or_else(|error| panic!("{error:?}"));
    (experiment.plans()[0].clone(), experiment.resolved())
}

#[test]
fn late_answers_to_an_earlier_question_are_not_taken_for_those_to_the_next() {
    let nodes = AnsweringNodes { refuse: vec![NodeId(1), NodeId(2), NodeId(3)], ..AnsweringNodes::default() };
    let mut session = Session::new(Box::new(nodes));
    let [first, second, third] = [1, 2, 3].map(plan);
    session.load(&first.0, &first.1).unwrap();
    let refused = session.load(&second.0, &second.1).unwrap_err();
    assert_eq!(refused.to_string(), "question 1");
    assert!(session.configured.as_ref().is_some_and(|configured| configured.has(&first.0, &first.1)));
    session.load(&third.0, &third.1).unwrap();
    assert!(session.configured.as_ref().is_some_and(|configured| configured.has(&third.0, &third.1)));
}
