import { type ErrorCode, errorCodes } from "./error-codes.ts";

export interface SandboxErrorOptions {
  /** What happened, in snake_case. */
  readonly reason: string;
  readonly message: string;
  /** What to do next. */
  readonly hint?: string | undefined;
  readonly details?: Readonly<Record<string, unknown>> | undefined;
  readonly cause?: unknown;
}

/** The one error class. A command that exits non-zero is a result, not an error. */
export class SandboxError extends Error {
  override readonly name = "SandboxError";
  readonly code: ErrorCode;
  readonly reason: string;
  readonly hint: string | undefined;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, options: SandboxErrorOptions) {
    super(options.message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.reason = options.reason;
    this.hint = options.hint;
    this.details = Object.freeze({ ...options.details });
  }

  get retryable(): boolean {
    return errorCodes[this.code].retryable;
  }

  /** Converts whatever was thrown, once, at an edge. */
  static from(thrown: unknown, fallback: ErrorCode = "internal"): SandboxError {
    if (thrown instanceof SandboxError) return thrown;
    if (thrown instanceof Error && thrown.name === "AbortError") {
      return new SandboxError("canceled", { reason: "aborted", message: thrown.message, cause: thrown });
    }
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    return new SandboxError(fallback, { reason: "unexpected", message, cause: thrown });
  }
}
