//! Runs two futures concurrently in one task.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// Ends when both have succeeded, or with the first error.
pub async fn try_join<E>(
    first: impl Future<Output = Result<(), E>>,
    second: impl Future<Output = Result<(), E>>,
) -> Result<(), E> {
    let (mut first, mut second) = (pin!(first), pin!(second));
    let (mut first_ended, mut second_ended) = (false, false);
    poll_fn(|context| {
        if !first_ended && let Poll::Ready(outcome) = first.as_mut().poll(context) {
            outcome?;
            first_ended = true;
        }
        if !second_ended && let Poll::Ready(outcome) = second.as_mut().poll(context) {
            outcome?;
            second_ended = true;
        }
        if first_ended && second_ended { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await
}
