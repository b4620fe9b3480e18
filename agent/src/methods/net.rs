//! The methods of the network that are one request and one answer.

use crate::agent::Agent;
use crate::calls::call::Call;
use crate::error::Result;
use crate::net::dns::answer::Answer;
use crate::net::dns::query::{Query, ResponseCode};
use crate::net::dns::record_type::RecordType;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct RefuseParams {
    flow: u64,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    StandIn,
    Empty,
    NameError,
    Refused,
    ServerFailure,
}

#[derive(Deserialize)]
struct AnswerParams {
    query: u64,
    outcome: Outcome,
}

pub fn refuse(agent: &Agent, mut call: Call) -> Result<Value> {
    let params: RefuseParams = call.params()?;
    // Dropping the socket resets the connection.
    drop(agent.network.subscription().and_then(|subscription| subscription.take_flow(params.flow)));
    Ok(json!({}))
}

pub fn answer(agent: &Agent, mut call: Call) -> Result<Value> {
    let params: AnswerParams = call.params()?;
    if let Some(subscription) = agent.network.subscription() {
        subscription.answer(params.query, |query| answer_with(agent, params.outcome, query));
    }
    Ok(json!({}))
}

fn answer_with(agent: &Agent, outcome: Outcome, query: &Query) -> Answer {
    match outcome {
        Outcome::StandIn if query.record_type == RecordType::A => {
            Answer::Address(agent.network.stand_ins.borrow_mut().address_of(&query.name))
        }
        // An address of IPv6 or the hints of HTTPS would lead past the stand-in address.
        Outcome::StandIn | Outcome::Empty => Answer::Empty(ResponseCode::NoError),
        Outcome::NameError => Answer::Empty(ResponseCode::NameError),
        Outcome::Refused => Answer::Empty(ResponseCode::Refused),
        Outcome::ServerFailure => Answer::Empty(ResponseCode::ServerFailure),
    }
}
