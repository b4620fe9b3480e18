import { SandboxError } from "@sandpiper/protocol/error";
import { describe, expect, it } from "vitest";
import { exitCodeOfError, exitCodeOfSignal } from "./exit-code.ts";

const error = (code: SandboxError["code"], reason: string) =>
  SandboxError.fromFields({ code, reason, message: "it failed" });

describe("the exit code", () => {
  it("is 128 and the signal's number when a signal ended the program", () => {
    expect([exitCodeOfSignal("SIGINT"), exitCodeOfSignal("SIGTERM"), exitCodeOfSignal("SIGHUP")]).toEqual([
      130, 143, 129,
    ]);
  });

  it.each([
    [127, "not_found", "no_such_program"],
    [126, "failed_precondition", "not_executable"],
    [137, "gone", "out_of_memory"],
    [2, "invalid_argument", "invalid_config"],
    [125, "unavailable", "agent_timeout"],
    [125, "resource_exhausted", "sandbox_limit"],
    [125, "internal", "unexpected"],
  ] as const)("of a verb that runs a command is %i for %s %s, as in a shell", (exitCode, code, reason) => {
    expect(exitCodeOfError(error(code, reason), { endsLikeItsCommand: true })).toBe(exitCode);
  });

  it.each([
    [1, "not_found", "no_such_sandbox"],
    [1, "internal", "unexpected"],
    [2, "invalid_argument", "usage"],
    [3, "unavailable", "no_node"],
    [3, "unavailable", "node_unreachable"],
  ] as const)("of a verb that runs no command is %i for %s %s", (exitCode, code, reason) => {
    expect(exitCodeOfError(error(code, reason), { endsLikeItsCommand: false })).toBe(exitCode);
  });
});
