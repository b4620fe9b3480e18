import { SandboxError } from "@sandpiper/core";

interface S3Fault {
  readonly name?: string;
  readonly message?: string;
  readonly $metadata?: { readonly httpStatusCode?: number; readonly attempts?: number };
}

/** The HTTP status of the response; undefined if there was none. */
export function statusOf(thrown: unknown): number | undefined {
  return (thrown as S3Fault | undefined)?.$metadata?.httpStatusCode;
}

/** Whether the SDK sent the request more than once, so that an earlier attempt may have taken effect. */
export function wasRepeated(thrown: unknown): boolean {
  return ((thrown as S3Fault | undefined)?.$metadata?.attempts ?? 1) > 1;
}

export function isNamed(thrown: unknown, ...names: readonly string[]): boolean {
  return names.includes((thrown as S3Fault | undefined)?.name ?? "");
}

/** Converts an error of the S3 client to one that names the store. */
export function s3Error(thrown: unknown, label: string): SandboxError {
  if (thrown instanceof SandboxError) return thrown;
  const { message = String(thrown), name } = thrown as S3Fault;
  const why = name === undefined || message.includes(name) ? message : `${name}: ${message}`;
  const cause = thrown;
  if (isNamed(thrown, "NoSuchBucket")) {
    return new SandboxError("bucket_missing", { message: `the bucket of the store ${label} does not exist`, cause });
  }
  if (isNamed(thrown, "CredentialsProviderError") || /region is missing/i.test(message)) {
    return new SandboxError("store_not_configured", { message: `cannot use the store ${label}: ${why}`, cause });
  }
  const status = statusOf(thrown);
  if (status === 401 || status === 403) {
    return new SandboxError("store_refused", {
      message: `the store ${label} refuses these credentials: ${why}`,
      hint: "check the key and its secret; the key must be allowed to list, read, write and delete under the prefix",
      cause,
    });
  }
  return new SandboxError("store_unreachable", {
    message: `cannot reach the store ${label}: ${why}`,
    hint: "check the network, and AWS_ENDPOINT_URL if the bucket is not on Amazon S3",
    cause,
  });
}
