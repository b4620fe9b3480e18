import { SandboxError } from "@sandpiper/core";
import { describe, expect, it } from "vitest";
import { engineError } from "./engine-error.ts";

const endpoint = { url: new URL("unix:///run/engine.sock"), origin: "DOCKER_HOST", tls: undefined };

function responseError(statusCode: number, text: string): Error {
  return Object.assign(new Error(`(HTTP code ${statusCode}) unexpected - ${text} `), { statusCode });
}

describe("an error of the engine", () => {
  it.each([
    [400, "invalid_argument", "engine_refused"],
    [401, "permission_denied", "engine_denied"],
    [403, "permission_denied", "engine_denied"],
    [404, "not_found", "not_in_engine"],
    [409, "conflict", "engine_conflict"],
    [500, "unavailable", "engine_failed"],
    [503, "unavailable", "engine_failed"],
  ])("with status %i is a %s", (statusCode, code, reason) => {
    expect(
      engineError(responseError(statusCode, "the engine's own - words"), "start container abc", endpoint),
    ).toMatchObject({
      code,
      reason,
      message: "could not start container abc: the engine's own - words",
      details: { statusCode },
    });
  });

  it.each(["ECONNREFUSED", "ECONNRESET", "ENOENT", "EPIPE", "ENOTFOUND"])(
    "of the connection names the engine: %s",
    (code) => {
      const thrown = Object.assign(new Error("socket hang up"), { code });
      expect(engineError(thrown, "list volumes", endpoint)).toMatchObject({
        code: "unavailable",
        reason: "engine_unreachable",
        message: `could not list volumes: the engine at unix:///run/engine.sock (DOCKER_HOST) does not answer: ${code}`,
      });
    },
  );

  it("of permission names the group of the socket", () => {
    const thrown = Object.assign(new Error("connect EACCES"), { code: "EACCES" });
    expect(engineError(thrown, "list volumes", endpoint)).toMatchObject({
      code: "permission_denied",
      reason: "engine_denied",
      hint: expect.stringContaining("group"),
    });
  });

  it("is the abort's own error, if it has one", () => {
    const reason = SandboxError.fromFields({ code: "deadline_exceeded", reason: "boot_timeout", message: "too slow" });
    const thrown = Object.assign(new Error("aborted", { cause: reason }), { name: "AbortError", code: "ABORT_ERR" });
    expect(engineError(thrown, "create container abc", endpoint)).toBe(reason);
    const abort = new DOMException("aborted", "AbortError");
    expect(engineError(abort, "create container abc", endpoint)).toMatchObject({ code: "canceled", reason: "aborted" });
  });

  it("that is already converted stays unchanged", () => {
    const error = SandboxError.fromFields({ code: "not_found", reason: "x", message: "y" });
    expect(engineError(error, "anything", endpoint)).toBe(error);
  });

  it("is truncated when the engine's message is very long", () => {
    expect(engineError(responseError(500, "x".repeat(5000)), "anything", endpoint).message.length).toBeLessThan(1100);
  });
});
