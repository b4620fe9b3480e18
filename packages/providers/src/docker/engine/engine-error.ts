import { SandboxError } from "@sandpiper/core";
import type { ErrorCode } from "@sandpiper/protocol";
import type { Endpoint } from "./endpoint.ts";

/** How the system says that nobody answers. */
const UNREACHABLE = new Set([
  ...["ECONNREFUSED", "ECONNRESET", "ENOENT", "EPIPE", "ENOTFOUND", "EAI_AGAIN", "ETIMEDOUT", "EHOSTUNREACH"],
  ...["ENETUNREACH", "ENOTSOCK"],
]);
const NOT_ALLOWED = new Set(["EACCES", "EPERM"]);
const MAX_WORDS = 1000;

interface Kind {
  readonly code: ErrorCode;
  readonly reason: string;
  readonly hint: string;
}

const LOOK = "look at the engine's own log, for example with `journalctl -u docker`";
const KINDS: Readonly<Record<number, Kind>> = {
  400: { code: "invalid_argument", reason: "engine_refused", hint: "the engine does not take these options" },
  401: { code: "permission_denied", reason: "engine_denied", hint: "the engine wants another credential" },
  403: { code: "permission_denied", reason: "engine_denied", hint: "an authorization plugin of the engine says no" },
  404: {
    code: "not_found",
    reason: "not_in_engine",
    hint: "somebody else may have removed it; look with `docker ps -a`",
  },
  406: { code: "failed_precondition", reason: "engine_refused", hint: LOOK },
  409: { code: "conflict", reason: "engine_conflict", hint: "somebody else works on the same thing; try again" },
  503: { code: "unavailable", reason: "engine_unavailable", hint: LOOK },
};
const FAILED: Kind = { code: "unavailable", reason: "engine_failed", hint: LOOK };

/** Converts what a call of the engine threw. `doing` goes on after "could not", such as "remove container abc". */
export function engineError(thrown: unknown, doing: string, endpoint?: Endpoint): SandboxError {
  if (thrown instanceof SandboxError) return thrown;
  const { name, code = "", statusCode, message } = describe(thrown);
  if (name === "AbortError" || name === "TimeoutError" || code === "ABORT_ERR") {
    // Whoever aborted may have said why.
    if (thrown instanceof Error && thrown.cause instanceof SandboxError) return thrown.cause;
    return new SandboxError("canceled", { reason: "aborted", message: `could not ${doing}: aborted`, cause: thrown });
  }
  const engine = endpoint === undefined ? "the engine" : `the engine at ${endpoint.url.href} (${endpoint.origin})`;
  if (statusCode !== undefined) {
    const kind = KINDS[statusCode] ?? FAILED;
    const details = { statusCode };
    return new SandboxError(kind.code, { ...kind, message: `could not ${doing}: ${message}`, details, cause: thrown });
  }
  if (NOT_ALLOWED.has(code)) {
    return new SandboxError("permission_denied", {
      reason: "engine_denied",
      message: `could not ${doing}: no permission for ${engine}`,
      hint: "run as root, or as a member of the group that owns the socket (`docker`, most often)",
      cause: thrown,
    });
  }
  if (UNREACHABLE.has(code)) {
    return new SandboxError("unavailable", {
      reason: "engine_unreachable",
      message: `could not ${doing}: ${engine} does not answer: ${code}`,
      hint: "start it (`systemctl start docker`), or set DOCKER_HOST to where it is",
      cause: thrown,
    });
  }
  if (code === "")
    return new SandboxError(FAILED.code, { ...FAILED, message: `could not ${doing}: ${message}`, cause: thrown });
  return new SandboxError("unavailable", {
    reason: "engine_unreachable",
    message: `could not ${doing}: no conversation with ${engine}: ${message}`,
    hint: "look whether DOCKER_HOST and its certificates are what the engine wants",
    cause: thrown,
  });
}

interface Description {
  readonly name: string;
  readonly code: string | undefined;
  readonly statusCode: number | undefined;
  readonly message: string;
}

/** The client library puts the status and the words of the engine on a plain error. */
function describe(thrown: unknown): Description {
  const error = (typeof thrown === "object" && thrown !== null ? thrown : { message: String(thrown) }) as {
    readonly name?: unknown;
    readonly code?: unknown;
    readonly statusCode?: unknown;
    readonly message?: unknown;
  };
  const message = String(error.message ?? "").replace(/^\(HTTP code \d+\)[^-]*- /, "");
  return {
    name: String(error.name ?? ""),
    code: typeof error.code === "string" ? error.code : undefined,
    statusCode: typeof error.statusCode === "number" ? error.statusCode : undefined,
    message: message.trim().slice(0, MAX_WORDS),
  };
}
