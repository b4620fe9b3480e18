import { SandboxError } from "@sandpiper/protocol/error";
import { describe, expect, it } from "vitest";
import { exitCodeOfError, exitCodeOfSignal } from "./exit-code.ts";

const error = (code: SandboxError["code"], reason: string) =>
  SandboxError.fromFields({ code, reason, message: "it failed" });
const errorWith = (...parts: Parameters<typeof error>) =>
  exitCodeOfError(error(...parts), { endsLikeItsCommand: true });
const failureWith = (...parts: Parameters<typeof error>) =>
  exitCodeOfError(error(...parts), { endsLikeItsCommand: false });

describe("the exit code", () => {
  it("is 128 and the signal's number when a signal ended the program", () => {
    expect([exitCodeOfSignal("SIGINT"), exitCodeOfSignal("SIGTERM"), exitCodeOfSignal("SIGHUP")]).toEqual([
      130, 143, 129,
    ]);
  });

  it("is 127 or 126, as in a shell, when the command cannot be started", () => {
    expect(errorWith("not_found", "no_such_program")).toBe(127);
    expect(errorWith("failed_precondition", "not_executable")).toBe(126);
  });

  it("is 137 when memory ran out", () => {
    expect(errorWith("resource_exhausted", "out_of_memory")).toBe(137);
  });

  it("is 2 when the command line is wrong and 125 when Sandpiper fails", () => {
    expect(errorWith("invalid_argument", "invalid_config")).toBe(2);
    expect(errorWith("unavailable", "agent_timeout")).toBe(125);
    expect(errorWith("resource_exhausted", "sandbox_limit")).toBe(125);
    expect(errorWith("internal", "unexpected")).toBe(125);
  });

  it("of verbs that run no command is 1, 2 for a wrong command line, and 3 where no node runs", () => {
    expect(failureWith("not_found", "no_such_sandbox")).toBe(1);
    expect(failureWith("internal", "unexpected")).toBe(1);
    expect(failureWith("invalid_argument", "usage")).toBe(2);
    expect(failureWith("unavailable", "no_node")).toBe(3);
    expect(failureWith("unavailable", "node_unreachable")).toBe(3);
  });
});
