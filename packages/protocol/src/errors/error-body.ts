import { z } from "zod";
import { type ErrorCode, errorCodes } from "./error-codes.ts";
import { errorReasons } from "./error-reasons.ts";
import { SandboxError } from "./sandbox-error.ts";

/** The body of every failed request. */
export const errorBodySchema = z
  .strictObject({
    code: z.enum(Object.keys(errorCodes) as [ErrorCode, ...ErrorCode[]]),
    /** What happened, in snake_case. */
    reason: z.string(),
    message: z.string(),
    /** What to do next. */
    hint: z.string().optional(),
    details: z.record(z.string(), z.unknown()),
    requestId: z.string(),
  })
  .meta({ id: "Error", description: "The body of every failed request." });

export type ErrorBody = z.infer<typeof errorBodySchema>;

/** Leaves out the cause, which may contain details of the host. */
export function errorBody(error: SandboxError, requestId: string): ErrorBody {
  const { code, reason, message, hint, details } = error;
  return { code, reason, message, ...(hint === undefined ? {} : { hint }), details, requestId };
}

/** Recreates the error of an answer on the client's side. */
export function errorFromBody(body: unknown, fallback: { readonly status: number }): SandboxError {
  const parsed = errorBodySchema.safeParse(body);
  if (parsed.success) {
    const { details, requestId, ...fields } = parsed.data;
    return SandboxError.fromFields({ ...fields, details: { ...details, requestId } });
  }
  const codes = Object.entries(errorCodes).filter(([, entry]) => entry.httpStatus === fallback.status);
  return SandboxError.fromFields({
    code: (codes[0]?.[0] as ErrorCode | undefined) ?? errorReasons.unexpected_answer.code,
    reason: "unexpected_answer",
    message: `the server answered with status ${fallback.status} and without a readable error`,
    hint: errorReasons.unexpected_answer.hint,
    details: { status: fallback.status },
  });
}
