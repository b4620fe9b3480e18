import { SandboxError } from "@sandpiper/core";
import type { ErrorReason } from "@sandpiper/protocol";
import { parseImageReference } from "../../host/image-reference.ts";

/** Converts the status of a registry's answer. The body is left out: the registry may be any server that the reference names. */
export function refusal(reference: string, status: number): SandboxError {
  const { registry } = parseImageReference(reference);
  const login = `run \`docker login ${registry}\` as the user that runs Sandpiper`;
  const [reason, why, hint] = ((): readonly [ErrorReason, string, string] => {
    if (status === 401 || status === 403) return ["registry_refused", `${registry} refuses access`, login];
    if (status === 404) {
      return ["image_not_found", `${registry} does not have it`, `check the spelling; if it is private, ${login}`];
    }
    if (status === 429) return ["registry_rate_limit", `the rate limit of ${registry} is reached`, `wait, or ${login}`];
    return ["registry_unreachable", `${registry} answered with status ${status}`, "retry later"];
  })();
  return pullError(reference, { reason, why, hint });
}

export function unreachable(reference: string, cause: unknown): SandboxError {
  const { registry } = parseImageReference(reference);
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause;
  const why = `cannot reach ${registry}: ${inner instanceof Error ? inner.message : String(inner)}`;
  const hint = `check that this host can reach ${registry} and trusts its certificate`;
  return pullError(reference, { reason: "registry_unreachable", why, hint, cause });
}

/** The registry sent something else than it announced. */
export function damaged(reference: string, why: string): SandboxError {
  const { registry } = parseImageReference(reference);
  return pullError(reference, {
    reason: "image_damaged",
    why: `${registry} sent ${why}`,
    hint: "retry; if it happens again, push the image again",
  });
}

interface PullProblem {
  readonly reason: ErrorReason;
  readonly why: string;
  readonly hint: string;
  readonly cause?: unknown;
}

function pullError(reference: string, { reason, why, hint, cause }: PullProblem): SandboxError {
  const { registry } = parseImageReference(reference);
  const details = { image: reference, registry };
  return new SandboxError(reason, { message: `could not pull image ${reference}: ${why}`, hint, details, cause });
}
