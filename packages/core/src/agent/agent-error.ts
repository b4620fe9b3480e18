import { type ErrorCode, isErrorCode, rpcErrorSchema } from "@sandpiper/protocol";
import { SandboxError } from "../sandbox-error.ts";

const codeByRpcCode: Readonly<Record<number, ErrorCode>> = {
  [-32601]: "unimplemented",
  [-32602]: "invalid_argument",
};

/** What the `error` of an agent's answer becomes. Nothing in it is trusted to be well-formed. */
export function agentError(method: string, error: unknown): SandboxError {
  const parsed = rpcErrorSchema.safeParse(error);
  if (!parsed.success) return invalidAnswer(method, "its error has the wrong shape");
  const { code: rpcCode, message, data } = parsed.data;
  const isKnown = data !== undefined && isErrorCode(data.code);
  return new SandboxError(isKnown ? (data.code as ErrorCode) : (codeByRpcCode[rpcCode] ?? "internal"), {
    reason: data !== undefined && /^[a-z0-9_]{1,64}$/.test(data.reason) ? data.reason : "agent_error",
    message: `${method}: ${message}`,
    hint: data?.hint,
    details: { ...data?.details, rpcCode },
  });
}

export function invalidAnswer(method: string, problem: string): SandboxError {
  return new SandboxError("internal", {
    reason: "invalid_answer",
    message: `the agent's answer to ${method} makes no sense: ${problem}`,
    hint: "something in the sandbox may have tampered with its agent; create a new sandbox",
    details: { method },
  });
}
