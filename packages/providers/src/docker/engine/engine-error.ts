import { SandboxError } from "@sandpiper/core";
import type { ErrorReason } from "@sandpiper/protocol";
import type { Endpoint } from "./endpoint.ts";

/** System errors of an engine that does not answer. */
const UNREACHABLE = new Set([
  ...["ECONNREFUSED", "ECONNRESET", "ENOENT", "EPIPE", "ENOTFOUND", "EAI_AGAIN", "ETIMEDOUT", "EHOSTUNREACH"],
  ...["ENETUNREACH", "ENOTSOCK"],
]);
const NOT_ALLOWED = new Set(["EACCES", "EPERM"]);
const MAX_MESSAGE_CHARACTERS = 1000;

interface Kind {
  readonly reason: ErrorReason;
  readonly hint: string;
}

const LOOK = "check the engine's log, for example with `journalctl -u docker`";
const KINDS: Readonly<Record<number, Kind>> = {
  400: { reason: "engine_refused", hint: "change the options that the engine rejects" },
  401: { reason: "engine_denied", hint: "the engine requires another credential" },
  403: {
    reason: "engine_denied",
    hint: "an authorization plugin of the engine denied the request",
  },
  404: {
    reason: "not_in_engine",
    hint: "another client may have removed it; check `docker ps -a`",
  },
  406: { reason: "engine_refused", hint: LOOK },
  409: { reason: "engine_conflict", hint: "another client is changing the same object; try again" },
};
const FAILED: Kind = { reason: "engine_failed", hint: LOOK };

/** Converts an error of an engine call. `doing` completes "could not …", such as "remove container abc". */
export function engineError(thrown: unknown, doing: string, endpoint?: Endpoint): SandboxError {
  if (thrown instanceof SandboxError) return thrown;
  const { name, code, statusCode, message } = describe(thrown);
  if (name === "AbortError" || name === "TimeoutError" || code === "ABORT_ERR") {
    // The abort may carry its own error.
    if (thrown instanceof Error && thrown.cause instanceof SandboxError) return thrown.cause;
    return new SandboxError("aborted", { message: `could not ${doing}: aborted`, cause: thrown });
  }
  const engine = endpoint === undefined ? "the engine" : `the engine at ${endpoint.url.href} (${endpoint.origin})`;
  if (statusCode !== undefined || code === "") {
    const { reason, hint } = KINDS[statusCode ?? 500] ?? FAILED;
    const details = statusCode === undefined ? {} : { statusCode };
    return new SandboxError(reason, { hint, message: `could not ${doing}: ${message}`, details, cause: thrown });
  }
  if (NOT_ALLOWED.has(code)) {
    return new SandboxError("engine_denied", {
      message: `could not ${doing}: no permission for ${engine}`,
      hint: "run as root, or as a member of the group that owns the socket (usually `docker`)",
      cause: thrown,
    });
  }
  if (UNREACHABLE.has(code)) {
    return new SandboxError("engine_unreachable", {
      message: `could not ${doing}: ${engine} does not answer: ${code}`,
      hint: "start the engine (`systemctl start docker`), or set DOCKER_HOST to its address",
      cause: thrown,
    });
  }
  return new SandboxError("engine_unreachable", {
    message: `could not ${doing}: no connection to ${engine}: ${message}`,
    hint: "check that DOCKER_HOST and its certificates match the engine",
    cause: thrown,
  });
}

/** The client library puts the engine's status and message on a plain Error. */
function describe(thrown: unknown) {
  const error = (typeof thrown === "object" && thrown !== null ? thrown : { message: String(thrown) }) as {
    readonly [field in "name" | "code" | "statusCode" | "message"]?: unknown;
  };
  const message = String(error.message ?? "").replace(/^\(HTTP code \d+\)[^-]*- /, "");
  return {
    name: error.name,
    code: typeof error.code === "string" ? error.code : "",
    statusCode: typeof error.statusCode === "number" ? error.statusCode : undefined,
    message: message.trim().slice(0, MAX_MESSAGE_CHARACTERS),
  };
}
