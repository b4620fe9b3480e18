export {
  type CallId,
  callIdSchema,
  notificationSchema,
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
} from "./agent/methods.ts";
export {
  type DnsOutcome,
  type ListeningPort,
  listeningPortSchema,
  type NetworkEvent,
  networkEventSchema,
  type PortEvent,
  portEventSchema,
} from "./agent/network.ts";
export { type ExitStatus, type ProcessInfo, processIdSchema, type SpawnParams } from "./agent/process.ts";
export { agentNotifications } from "./agent/stream.ts";
export { type CacheResource, cacheListSchema } from "./api/cache.ts";
export {
  type CheckpointPolicy,
  type CheckpointPolicyBody,
  type CheckpointResource,
  type CreateCheckpointBody,
  checkpointListSchema,
  checkpointPolicySchema,
  checkpointRefSchema,
  checkpointResourceSchema,
  createCheckpointBodySchema,
  type ForkBody,
  forkBodySchema,
  handoffBodySchema,
  type MoveSandboxBody,
  moveSandboxBodySchema,
  type RollbackBody,
  rollbackBodySchema,
} from "./api/checkpoint.ts";
export { CHECKPOINT_POLICY_SYNTAX, parseCheckpointPolicy } from "./api/checkpoint-policy-text.ts";
export {
  type ContainerBody,
  cacheNameSchema,
  containerSchema,
  imageSchema,
  portKey,
  projectNameSchema,
  type StopSandboxBody,
  volumeNameSchema,
} from "./api/container.ts";
export {
  type EventBody,
  type EventKind,
  eventKindSchema,
  eventListSchema,
  eventSchema,
  listEventsQuerySchema,
} from "./api/event.ts";
export {
  changeModeBodySchema,
  type FileEntryBody,
  type FileEventBody,
  fileEntrySchema,
  fileEventSchema,
  fileListSchema,
  listFilesQuerySchema,
  makeDirectoryBodySchema,
  makeDirectoryResultSchema,
  moveFileBodySchema,
  pathQuerySchema,
  readFileQuerySchema,
  removeFileQuerySchema,
  type SandboxMetricsBody,
  sandboxMetricsSchema,
  statFileQuerySchema,
  watchFilesQuerySchema,
  writeFileQuerySchema,
  writeResultSchema,
} from "./api/file.ts";
export { type PullImageBody, type PullProgressBody, pullImageBodySchema, pullProgressSchema } from "./api/image.ts";
export {
  type CreatedKey,
  type CreateKeyBody,
  createdKeySchema,
  createKeyBodySchema,
  type KeyResource,
  type KeyScope,
  keyListSchema,
  keyResourceSchema,
  type UpdateKeyBody,
  updateKeyBodySchema,
} from "./api/key.ts";
export {
  type MachineDetails,
  type MachineResource,
  machineDetailsSchema,
  machineListSchema,
  type StopMachineBody,
  stopMachineBodySchema,
} from "./api/machine.ts";
export {
  completeNetwork,
  DEFAULT_NETWORK_LIMITS,
  isNoNetwork,
  MAX_NETWORK_RULES,
  type NetworkBody,
  type NetworkLimits,
  type NetworkPolicy,
  type NetworkRule,
  networkBodySchema,
  networkPolicySchema,
  networkRuleSchema,
  parsePortRange,
} from "./api/network.ts";
export {
  type DecideNetworkRequestBody,
  decideNetworkRequestBodySchema,
  type NetworkLog,
  type NetworkRequest,
  type NetworkSuggestion,
  networkLogQuerySchema,
  networkLogSchema,
  networkRequestListSchema,
  networkRequestSchema,
  networkSuggestionSchema,
} from "./api/network-audit.ts";
export { DEFAULT_NETWORK_BUNDLES } from "./api/network-bundles.ts";
export {
  type FlowReason,
  type FlowRecord,
  type FlowRequest,
  flowReasonSchema,
  flowRecordSchema,
} from "./api/network-log.ts";
export {
  type NetworkTarget,
  parseCidr,
  parseHostName,
  parseNetworkTarget,
  targetText,
} from "./api/network-target.ts";
export { NETWORK_SYNTAX, parseNetwork, parseTargetText, ruleText } from "./api/network-text.ts";
export {
  type AuditEntry,
  type AuditFinding,
  type AuditVerification,
  auditEntrySchema,
  auditListSchema,
  auditVerificationSchema,
  type CreateWebhookBody,
  createdWebhookSchema,
  createWebhookBodySchema,
  type DrainNodeBody,
  drainNodeBodySchema,
  type Health,
  healthSchema,
  type ListAuditQuery,
  listAuditQuerySchema,
  type NodeResource,
  nodeListSchema,
  nodeResourceSchema,
  type WebhookResource,
  webhookListSchema,
  webhookResourceSchema,
} from "./api/node.ts";
export {
  type PoolKeyBody,
  type PoolResource,
  poolKeySchema,
  poolListSchema,
  poolResourceSchema,
  type SetPoolBody,
  setPoolBodySchema,
} from "./api/pool.ts";
export {
  type CreateLinkBody,
  createLinkBodySchema,
  type LinkResource,
  linkResourceSchema,
  type NewLink,
  type PortResource,
  type PreviewResource,
  portListSchema,
  portNumberSchema,
  previewResourceSchema,
  type SetPreviewBody,
  setPreviewBodySchema,
} from "./api/preview.ts";
export {
  type ExecResultBody,
  execBodySchema,
  execResultSchema,
  MAX_CODE_BYTES,
  outputQuerySchema,
  type ProcessExitBody,
  type ProcessResource,
  processExitSchema,
  processListSchema,
  processResourceSchema,
  type StartProcessBody,
  signalBodySchema,
  startProcessBodySchema,
  stdinQuerySchema,
  stdinResultSchema,
  type TerminalSize,
  terminalSizeSchema,
  waitQuerySchema,
} from "./api/process.ts";
export {
  completeQuota,
  type Quota,
  type QuotaChanges,
  quotaSchema,
  type TenantResource,
  tenantListSchema,
  tenantNameSchema,
  tenantResourceSchema,
  type UpdateTenantBody,
  type Usage,
  type UsageQuery,
  updateTenantBodySchema,
  usageQuerySchema,
  usageSchema,
} from "./api/quota.ts";
export type { Access, Content, Route } from "./api/route.ts";
export { type OperationId, routes } from "./api/routes.ts";
export {
  type Activity,
  activitySchema,
  type CreateSandboxBody,
  createSandboxBodySchema,
  type ListSandboxesQuery,
  listSandboxesQuerySchema,
  type SandboxHealth,
  type SandboxPage,
  type SandboxResource,
  sandboxHealthSchema,
  sandboxListSchema,
  sandboxPageSchema,
  sandboxResourceSchema,
  sandboxStateSchema,
  type UpdateSandboxBody,
  updateSandboxBodySchema,
} from "./api/sandbox.ts";
export {
  type CreateSecretBody,
  createSecretBodySchema,
  type SecretInjection,
  type SecretResource,
  type SecretUse,
  type SecretUsesBody,
  secretListSchema,
  secretNameSchema,
  secretResourceSchema,
  secretUseSchema,
  type UpdateSecretBody,
  updateSecretBodySchema,
} from "./api/secret.ts";
export { type DeleteSandboxQuery, type VolumeResource, volumeListSchema } from "./api/volume.ts";
export { abortError } from "./errors/abort-error.ts";
export { type ErrorBody, errorBody, errorBodySchema, errorFromBody } from "./errors/error-body.ts";
export { type ErrorCode, type ErrorCodeEntry, errorCodes, isErrorCode } from "./errors/error-codes.ts";
export type { ErrorReasonEntry } from "./errors/error-reason.ts";
export { type ErrorReason, errorReasons, errorTopics, isErrorReason } from "./errors/error-reasons.ts";
export {
  type ErrorDetails,
  type ErrorFields,
  SandboxError,
  type SandboxErrorOptions,
} from "./errors/sandbox-error.ts";
export {
  type Command,
  type CommandOptions,
  commandBody,
  commandTarget,
  type Program,
  type SourceCode,
} from "./exec/command.ts";
export {
  DEFAULT_MAX_OUTPUT_BYTES,
  type ExecOptions,
  ExecOutput,
  type ExecOutputOptions,
  type ExecResult,
} from "./exec/exec-output.ts";
export { findLanguage, type Language, languages, programsOf } from "./exec/languages.ts";
export { createSandboxId, isSandboxId, type SandboxId, sandboxIdSchema } from "./sandbox-id.ts";
export { type DataFrame, type DataSource, decodeDataFrame, encodeDataFrame } from "./socket/data-frame.ts";
export {
  type ClientMessage,
  clientMessageSchema,
  type ServerMessage,
  SOCKET_PROTOCOL,
  STDIN_WINDOW_BYTES,
  serverMessageSchema,
} from "./socket/message.ts";
export {
  executionOfProcess,
  executionProcess,
  MAX_SOCKET_MESSAGE_BYTES,
  resumeQuerySchema,
  type SessionEvent,
  type SessionStatus,
  sessionEventSchema,
  sessionRequestSchema,
  sessionStatusSchema,
} from "./socket/session.ts";
export { ByteCollector } from "./streams/byte-collector.ts";
export { ChunkQueue } from "./streams/chunk-queue.ts";
export { bytesOf, type OutputChunk, type OutputSource, type StreamChunk } from "./streams/output-chunk.ts";
export { type Clock, systemClock } from "./time/clock.ts";
export { pause } from "./time/pause.ts";
