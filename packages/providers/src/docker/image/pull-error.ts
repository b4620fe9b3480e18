import { SandboxError } from "@sandpiper/core";
import type { ErrorReason } from "@sandpiper/protocol";
import { parseImageReference } from "../../host/image-reference.ts";
import type { Engine } from "../engine/engine.ts";
import { engineError } from "../engine/engine-error.ts";
import { wrongArchitecture } from "./image.ts";
import { PullFailure } from "./pull-reader.ts";

interface Kind {
  readonly pattern: RegExp;
  readonly reason: ErrorReason;
  hint(reference: string, registry: string): string;
}

const REFUSED: Omit<Kind, "pattern"> = {
  reason: "registry_refused",
  hint: (_, registry) => `run \`docker login ${registry}\` as the user that runs Sandpiper`,
};

/** Engines pass on a registry's error only as text. The first match counts. */
const KINDS: readonly Kind[] = [
  {
    pattern: /invalid reference format|repository name must be|invalid tag format/i,
    reason: "image_reference",
    hint: () => "use a reference such as python:3.13-slim or registry.example:5000/team/app:1.2",
  },
  {
    pattern: /toomanyrequests|rate limit/i,
    reason: "registry_rate_limit",
    hint: (_, registry) => `wait, or log in with \`docker login ${registry}\``,
  },
  {
    pattern: /no basic auth|unauthorized|incorrect username|authentication required/i,
    ...REFUSED,
  },
  {
    // Docker Hub reports a missing image as possibly private.
    pattern: /manifest unknown|not found|name unknown|repository does not exist|no such image/i,
    reason: "image_not_found",
    hint: (reference, registry) =>
      `check the spelling of ${reference}; if it is private, run \`docker login ${registry}\` as the user that runs Sandpiper`,
  },
  { pattern: /denied|forbidden/i, ...REFUSED },
  {
    pattern: /x509|tls:|certificate|HTTP response to HTTPS client/i,
    reason: "registry_unreachable",
    hint: (_, registry) =>
      `the engine does not trust ${registry}: install its certificate as /etc/docker/certs.d/${registry}/ca.crt, or add it to insecure-registries`,
  },
  {
    pattern:
      /dial tcp|no such host|connection refused|timeout|deadline|EOF|reset by peer|unreachable|request canceled/i,
    reason: "registry_unreachable",
    hint: (_, registry) => `check that the engine's machine can reach ${registry}`,
  },
];

/** Converts an error of a pull, from the engine or from the registry. */
export function pullError(thrown: unknown, reference: string, { endpoint, info }: Engine): SandboxError {
  const converted = engineError(thrown, `pull image ${reference}`, endpoint);
  const isOfRegistry = thrown instanceof PullFailure || converted.details["statusCode"] !== undefined;
  if (!isOfRegistry) return converted;
  const { message } = converted;
  if (
    /no matching manifest|no image found in (?:manifest list|image index)|does not match the specified platform/i.test(
      message,
    )
  ) {
    return wrongArchitecture(reference, "other platforms only", `${info.os}/${info.architecture}`);
  }
  const kind = KINDS.find(({ pattern }) => pattern.test(message));
  if (kind === undefined) return converted;
  const { registry } = parseImageReference(reference);
  return new SandboxError(kind.reason, {
    message,
    hint: kind.hint(reference, registry),
    details: { image: reference, registry },
    cause: thrown,
  });
}
