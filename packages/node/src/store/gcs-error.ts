import { SandboxError } from "@sandpiper/core";

interface GcsFault {
  /** The HTTP status, the code of a network error, or the number of a DOMException. */
  readonly code?: number | string;
  readonly status?: number;
  readonly message?: string;
  readonly cause?: unknown;
}

/** The HTTP status of the response; undefined if there was none. */
export function statusOf(thrown: unknown): number | undefined {
  const { code, status } = (thrown ?? {}) as GcsFault;
  return [code, status].find((value): value is number => typeof value === "number" && value >= 100);
}

/** Whether the object does not exist. */
export function isAbsent(thrown: unknown): boolean {
  return statusOf(thrown) === 404 && !/bucket does not exist/i.test(messageOf(thrown));
}

/** Whether the server rejected the request because there were too many; it has had no effect. */
export function isRateLimited(thrown: unknown): boolean {
  return statusOf(thrown) === 429;
}

/** Whether a repetition may succeed. The request may have taken effect. */
export function isTransient(thrown: unknown): boolean {
  if (thrown instanceof SandboxError) return false;
  const status = statusOf(thrown);
  return status === undefined || status === 408 || status >= 500;
}

/** For credentials that cannot be loaded. */
export function notConfigured(cause: unknown, label: string): SandboxError {
  return new SandboxError("store_not_configured", {
    message: `cannot use the store ${label}: ${messageOf(cause)}`,
    hint: 'set GOOGLE_APPLICATION_CREDENTIALS, run "gcloud auth application-default login", or attach a service account to the machine',
    cause,
  });
}

/** Converts an error of the client to one that names the store. */
export function gcsError(thrown: unknown, label: string): SandboxError {
  if (thrown instanceof SandboxError) return thrown;
  const why = messageOf(thrown);
  const cause = thrown;
  const status = statusOf(thrown);
  if (status === 404) {
    return new SandboxError("bucket_missing", { message: `the bucket of the store ${label} does not exist`, cause });
  }
  // The token server answers 400 to a key that was revoked.
  if (status === 401 || status === 403 || /invalid_grant/.test(why)) {
    return new SandboxError("store_refused", {
      message: `the store ${label} refuses these credentials: ${why}`,
      hint: "give the account the role Storage Object User on the bucket",
      cause,
    });
  }
  return new SandboxError("store_unreachable", {
    message: `cannot reach the store ${label}: ${why}`,
    hint: "check the network, and STORAGE_EMULATOR_HOST if it is set",
    cause,
  });
}

function messageOf(thrown: unknown): string {
  const { message = String(thrown), cause } = (thrown ?? {}) as GcsFault;
  // The message of a failed fetch alone is "fetch failed".
  return cause instanceof Error ? `${message}: ${cause.message}` : message;
}
