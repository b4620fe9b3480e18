import { SandboxError } from "@sandpiper/core";

interface S3Fault {
  readonly name?: string;
  readonly message?: string;
  readonly $metadata?: { readonly httpStatusCode?: number; readonly attempts?: number };
}

/** The HTTP status of an answer; undefined when there was none. */
export function statusOf(thrown: unknown): number | undefined {
  return (thrown as S3Fault | undefined)?.$metadata?.httpStatusCode;
}

/** Whether the SDK has sent the request more than once, so that an earlier one may have taken effect. */
export function wasRepeated(thrown: unknown): boolean {
  return ((thrown as S3Fault | undefined)?.$metadata?.attempts ?? 1) > 1;
}

export function isNamed(thrown: unknown, ...names: readonly string[]): boolean {
  return names.includes((thrown as S3Fault | undefined)?.name ?? "");
}

/** What a fault of S3, or of the way there, means to whoever uses the store. */
export function s3Error(thrown: unknown, label: string): SandboxError {
  if (thrown instanceof SandboxError) return thrown;
  const { message = String(thrown), name } = thrown as S3Fault;
  const said = name === undefined || message.includes(name) ? message : `${name}: ${message}`;
  if (isNamed(thrown, "NoSuchBucket")) {
    return new SandboxError("failed_precondition", {
      reason: "bucket_missing",
      message: `The bucket of the store ${label} does not exist`,
      hint: "Create the bucket, or correct SANDPIPER_STORE.",
      cause: thrown,
    });
  }
  if (isNamed(thrown, "CredentialsProviderError") || /region is missing/i.test(message)) {
    return new SandboxError("failed_precondition", {
      reason: "store_not_configured",
      message: `The store ${label} cannot be used: ${said}`,
      hint: "Set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION, or another source that the AWS SDK knows.",
      cause: thrown,
    });
  }
  const status = statusOf(thrown);
  if (status === 401 || status === 403) {
    return new SandboxError("permission_denied", {
      reason: "store_refused",
      message: `The store ${label} refuses these credentials: ${said}`,
      hint: "Check the key and its secret; it needs to list, read, write and delete under the prefix.",
      cause: thrown,
    });
  }
  return new SandboxError("unavailable", {
    reason: "store_unreachable",
    message: `The store ${label} does not answer: ${said}`,
    hint: "Check the network, and AWS_ENDPOINT_URL if the bucket is not Amazon's.",
    cause: thrown,
  });
}

/** A write whose answer is lost, and of which nothing can be seen: it may have happened and been replaced, or may still happen. */
export function unknownOutcome(key: string, label: string, cause: unknown): SandboxError {
  return new SandboxError("unavailable", {
    reason: "outcome_unknown",
    message: `Whether ${key} was written to the store ${label} is not known`,
    hint: "Read it again before anything is concluded.",
    cause,
  });
}
