import { type ErrorCode, errorCodes } from "./error-codes.ts";
import type { DetailsOf, ErrorReasonEntry } from "./error-reason.ts";
import { type ErrorReason, errorReasons } from "./error-reasons.ts";

/** The details that an error with this reason carries. */
export type ErrorDetails<Reason extends ErrorReason> = DetailsOf<(typeof errorReasons)[Reason]>;

interface CommonOptions {
  /** What was tried, on which id, and why it failed. */
  readonly message: string;
  /** What to do next, where that is more precise than the reason's default. */
  readonly hint?: string | undefined;
  readonly cause?: unknown;
}

/** `details` may be left out when the reason has none, or only optional ones. */
export type SandboxErrorOptions<Reason extends string> = Reason extends ErrorReason
  ? CommonOptions &
      (Record<never, never> extends ErrorDetails<Reason>
        ? { readonly details?: ErrorDetails<Reason> | undefined }
        : { readonly details: ErrorDetails<Reason> })
  : never;

/** An error as it was sent or recorded. Another version may have given it a reason or code that the table lacks. */
export interface ErrorFields extends CommonOptions {
  readonly code: ErrorCode;
  readonly reason: string;
  readonly details?: Readonly<Record<string, unknown>> | undefined;
}

/** The same symbol in every copy of this package, so that each copy recognizes the errors of the others. */
const BRAND = Symbol.for("sandpiper.SandboxError");

/** The one error class. A command that exits non-zero is a result, not an error. */
export class SandboxError<Reason extends string = string> extends Error {
  override readonly name = "SandboxError";
  readonly code: ErrorCode;
  readonly reason: Reason;
  readonly hint: string | undefined;
  readonly details: Readonly<Record<string, unknown>>;

  /** For `fromFields`. */
  constructor(fields: ErrorFields);
  constructor(reason: Reason & ErrorReason, options: SandboxErrorOptions<Reason>);
  constructor(first: ErrorReason | ErrorFields, options?: CommonOptions) {
    const fields = typeof first === "string" ? complete(first, options as CommonOptions) : first;
    super(fields.message, fields.cause === undefined ? undefined : { cause: fields.cause });
    this.code = fields.code;
    this.reason = fields.reason as Reason;
    this.hint = fields.hint;
    this.details = Object.freeze({ ...fields.details });
  }

  get [BRAND](): true {
    return true;
  }

  get retryable(): boolean {
    return errorCodes[this.code].retryable;
  }

  /** Whether a value is a SandboxError of any copy of this package, with this reason if one is given. */
  static is(value: unknown): value is SandboxError;
  static is<Reason extends ErrorReason>(value: unknown, reason: Reason): value is SandboxError<Reason>;
  static is(value: unknown, reason?: ErrorReason): boolean {
    const isOne = typeof value === "object" && value !== null && BRAND in value;
    return isOne && (reason === undefined || (value as SandboxError).reason === reason);
  }

  static override [Symbol.hasInstance](value: unknown): value is SandboxError {
    return SandboxError.is(value);
  }

  /** Recreates an error from the wire or a record, exactly as it was. */
  static fromFields(fields: ErrorFields): SandboxError {
    return new SandboxError(fields);
  }

  /** Converts a thrown value, once, at an edge. */
  static from(thrown: unknown, fallback: "unexpected" | "canceled" = "unexpected"): SandboxError {
    if (SandboxError.is(thrown)) return thrown;
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    const isAbort = thrown instanceof Error && thrown.name === "AbortError";
    return new SandboxError(isAbort ? "aborted" : fallback, { message, cause: thrown });
  }
}

/** Fills in what the table says about a reason. */
function complete(reason: ErrorReason, options: CommonOptions & Pick<ErrorFields, "details">): ErrorFields {
  const { code, hint }: ErrorReasonEntry = errorReasons[reason];
  return { ...options, reason, code, hint: options.hint ?? hint };
}
