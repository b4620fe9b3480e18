import {
  type ErrorCode,
  type ErrorReasonEntry,
  errorReasons,
  isErrorCode,
  isErrorReason,
  rpcErrorSchema,
  SandboxError,
} from "@sandpiper/protocol";

const codeByRpcCode: Readonly<Record<number, ErrorCode>> = {
  [-32601]: "unimplemented",
  [-32602]: "invalid_argument",
};

/** Converts the `error` of an agent's answer. The agent is not trusted, so nothing in it has to be well-formed. */
export function agentError(method: string, error: unknown): SandboxError {
  const parsed = rpcErrorSchema.safeParse(error);
  if (!parsed.success) return invalidAnswer(method, "its error has the wrong shape");
  const { code: rpcCode, message, data } = parsed.data;
  const reason = data !== undefined && /^[a-z0-9_]{1,64}$/.test(data.reason) ? data.reason : "agent_error";
  const entry: ErrorReasonEntry | undefined = isErrorReason(reason) ? errorReasons[reason] : undefined;
  return SandboxError.fromFields({
    code: isErrorCode(data?.code) ? data.code : (codeByRpcCode[rpcCode] ?? "internal"),
    reason,
    message: `${method}: ${message}`,
    hint: data?.hint ?? entry?.hint,
    details: { ...data?.details, rpcCode },
  });
}

export function invalidAnswer(method: string, problem: string): SandboxError {
  return new SandboxError("invalid_answer", {
    message: `the agent's answer to ${method} is invalid: ${problem}`,
    details: { method },
  });
}
