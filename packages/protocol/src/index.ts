export {
  type AgentMessage,
  type AgentNotification,
  type AgentRequest,
  type AgentResponse,
  type CallId,
  callIdSchema,
  notificationSchema,
  type RpcError,
  requestSchema,
  responseSchema,
  rpcErrorSchema,
} from "./agent/envelope.ts";
export { type FileInfo, fileInfoSchema, type WatchEvent, watchEventSchema } from "./agent/file.ts";
export {
  encodeFrame,
  type Frame,
  FrameDecoder,
  type FrameFault,
  type FrameSink,
  resyncPadding,
} from "./agent/frame.ts";
export {
  MAX_ATTACHMENT_BYTES,
  MAX_CALLS_IN_FLIGHT,
  MAX_LINE_BYTES,
  MAX_PENDING_STDIN_BYTES,
  PROTOCOL_GENERATION,
} from "./agent/generation.ts";
export {
  type AgentMethod,
  type AgentParams,
  type AgentResult,
  agentMethods,
  agentNotifications,
} from "./agent/methods.ts";
export { type ExitStatus, type ProcessInfo, processIdSchema, type SpawnParams } from "./agent/process.ts";
export { type ErrorCode, type ErrorCodeEntry, errorCodes, isErrorCode } from "./error-codes.ts";
export { createSandboxId, isSandboxId, type SandboxId, sandboxIdSchema } from "./sandbox-id.ts";
