import { describe, expect, it } from "vitest";
import { errorBody, errorFromBody } from "./error-body.ts";
import { SandboxError } from "./sandbox-error.ts";

describe("the body of an error", () => {
  it("recreates the error with its message, hint and details", () => {
    const error = SandboxError.fromFields({
      code: "data_loss",
      reason: "no_checkpoint",
      message: "it cannot be restored",
      hint: "create a new one",
      details: { sandbox: "s" },
    });
    const received = errorFromBody(JSON.parse(JSON.stringify(errorBody(error, "r"))), { status: 500 });
    expect(received).toMatchObject({ code: "data_loss", reason: "no_checkpoint", hint: "create a new one" });
    expect(received.message).toBe("it cannot be restored");
    expect(received.details).toEqual({ sandbox: "s", requestId: "r" });
  });

  it("becomes an unexpected_answer error when it is not readable", () => {
    const received = errorFromBody({ status: "error" }, { status: 404 });
    expect(received).toMatchObject({ code: "not_found", reason: "unexpected_answer", details: { status: 404 } });
    expect(received.message).toContain("404");
  });
});
