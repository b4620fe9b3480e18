export {
  type AuditEntry,
  type AuditFinding,
  type AuditVerification,
  type CacheResource,
  type CheckpointPolicy,
  type CheckpointPolicyBody,
  type CheckpointResource,
  type Command,
  type CommandOptions,
  type CreateCheckpointBody,
  type CreatedKey,
  type CreateKeyBody,
  type CreateSandboxBody,
  type CreateSecretBody,
  type CreateWebhookBody,
  type DrainNodeBody,
  type ErrorCode,
  type EventBody,
  type EventKind,
  type ExecOptions,
  type ExecOutputOptions,
  type ExecResult,
  type FileEntryBody,
  type FileEventBody,
  type FlowRecord,
  type ForkBody,
  type Health,
  type KeyResource,
  languages,
  type MachineDetails,
  type MachineResource,
  type NetworkBody,
  type NetworkLog,
  type NetworkPolicy,
  type NetworkRequest,
  type NetworkRule,
  type NetworkSuggestion,
  type NodeResource,
  type OutputChunk,
  type OutputSource,
  type PoolResource,
  type PortResource,
  type PreviewResource,
  type ProcessResource,
  type Program,
  type PullProgressBody,
  type Quota,
  SandboxError,
  type SandboxId,
  type SandboxMetricsBody,
  type SandboxResource,
  type SecretResource,
  type SecretUse,
  type SessionStatus,
  type SetPoolBody,
  type SourceCode,
  type TenantResource,
  type TerminalSize,
  type UpdateKeyBody,
  type UpdateSandboxBody,
  type UpdateSecretBody,
  type UpdateTenantBody,
  type Usage,
  type VolumeResource,
  type WebhookResource,
} from "@sandpiper/protocol";
export type { Audit, ListAuditOptions } from "./audit.ts";
export type { Caches } from "./caches.ts";
export type { CallOptions } from "./call-options.ts";
export { Client, type PastEventsOptions } from "./client.ts";
export { type ClientOptions, DEFAULT_URL } from "./client-options.ts";
export { decodeText } from "./decode-text.ts";
export type { EventStream, EventsOptions } from "./event-stream.ts";
export type { FileContent } from "./files/file-content.ts";
export type { FileWatcher, WatchOptions } from "./files/file-watcher.ts";
export type { OwnershipOptions, ReadOptions, SandboxFiles } from "./files/sandbox-files.ts";
export type { Images, PullOptions } from "./images.ts";
export type { Keys, UsageOptions } from "./keys.ts";
export type { Machines, StopMachineOptions } from "./machines.ts";
export type {
  FollowLogOptions,
  NetworkLogOptions,
  NetworkLogPageOptions,
  SandboxNetwork,
  SuggestOptions,
} from "./network/sandbox-network.ts";
export type { DrainOptions, Nodes } from "./nodes.ts";
export type { Pools } from "./pools.ts";
export type { PortConnection } from "./ports/port-connection.ts";
export type { UrlOptions } from "./ports/preview-url.ts";
export type { AttachOptions, StartOptions } from "./process/open-process.ts";
export type { Process, ProcessExit } from "./process/process.ts";
export type { RunCodeOptions, StartCodeOptions } from "./process/source-code.ts";
export type { Rollback } from "./rollback/rollback-watch.ts";
export { type ConnectOptions, Sandbox } from "./sandbox.ts";
export type { CheckpointOptions, DestroyOptions, ForkOptions, MoveOptions, StopOptions } from "./sandbox-handle.ts";
export type { CreateOptions, ListOptions, Sandboxes } from "./sandboxes.ts";
export type { Secrets } from "./secrets.ts";
export type { SessionResult } from "./session/collect-output.ts";
export {
  type RunOptions,
  Session,
  type SessionAttachOptions,
  type SessionCreateOptions,
  type SessionStatusUpdate,
} from "./session/session.ts";
export type { SessionExecution, SessionExit, SessionOutput } from "./session/session-execution.ts";
export type { WebSocketConstructor, WebSocketLike } from "./socket/web-socket.ts";
export type { Tenants } from "./tenants.ts";
export type { Timing } from "./timing.ts";
export type { Volumes } from "./volumes.ts";
export type { Webhooks } from "./webhooks.ts";
