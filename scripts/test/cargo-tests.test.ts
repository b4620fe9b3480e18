import { describe, expect, it } from "vitest";
import { cargoTally } from "./cargo-tests.ts";

const output = [
  "running 3 tests",
  "test frame::tests::splits ... ok",
  "test vsock::tests::dials ... ignored, needs a vsock device",
  "test outbox::tests::waits ... ignored",
  "test result: ok. 1 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.00s",
  "test outbox::tests::drains ... FAILED",
  "test outbox::tests::fills ... FAILED",
  "failures:",
  "---- outbox::tests::drains stdout ----",
  "thread 'outbox::tests::drains' (10485) panicked at tests/client/processes.rs:141:5:",
  "the end of all of it did not happen",
  "stack backtrace:",
  "test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
];

describe("the output of cargo test", () => {
  it("is summed over all test programs, with the messages of failed tests and the reasons of ignored ones", () => {
    expect(cargoTally(output, "cargo test ended with 101")).toEqual({
      passed: 5,
      failures: [
        {
          test: "agent outbox::tests::drains",
          message: "tests/client/processes.rs:141:5: the end of all of it did not happen",
        },
        { test: "agent outbox::tests::fills", message: "its output is above" },
      ],
      skips: [
        { test: "agent vsock::tests::dials", reason: "needs a vsock device" },
        { test: "agent outbox::tests::waits", reason: undefined },
      ],
      faults: [],
    });
  });

  it("counts a test that prints SKIP as skipped, not as passed", () => {
    const skipping = [
      "test vsock_carries_calls ... ok",
      "---- vsock_carries_calls stdout ----",
      "SKIP: this kernel has no vsock loopback",
      "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
    ];
    expect(cargoTally(skipping, undefined)).toEqual({
      passed: 1,
      failures: [],
      skips: [{ test: "agent vsock_carries_calls", reason: "this kernel has no vsock loopback" }],
      faults: [],
    });
  });

  it("reports a failure without a failed test, such as a broken build", () => {
    expect(cargoTally([], "cargo test ended with 101").faults).toEqual(["cargo test ended with 101"]);
  });
});
