export {
  type Clock,
  type Command,
  type CommandOptions,
  DEFAULT_MAX_OUTPUT_BYTES,
  type DnsOutcome,
  type ExecOptions,
  type ExecResult,
  type OutputChunk,
  type OutputSource,
  pause,
  SandboxError,
  type SandboxErrorOptions,
  systemClock,
  type TerminalSize,
} from "@sandpiper/protocol";
export {
  AgentClient,
  type AgentClientOptions,
  type CallOptions,
  DEFAULT_RPC_TIMEOUT_MS,
} from "./agent/agent-client.ts";
export { type ConnectAgentOptions, connectAgent, DEFAULT_CONNECT_TIMEOUT_MS } from "./agent/connect-agent.ts";
export { UPLOAD_PIECE_BYTES } from "./agent/outbound-stream.ts";
export type { DialOptions, DialTarget, Tunnel } from "./agent/tunnel.ts";
export type { ByteSource, UploadOptions } from "./agent/upload.ts";
export type { Channel, ChannelReceiver } from "./channel.ts";
export type {
  CacheVolume,
  ContainerEvent,
  ContainerExit,
  ContainerInfo,
  ContainerOptions,
  ContainerState,
  Containers,
  KeptVolume,
  KeptVolumes,
  PullOptions,
  PullProgress,
} from "./containers.ts";
export type { DirEntry, FileEntry } from "./files/file-entry.ts";
export type { FileEvent, FileWatcher, WatchOptions } from "./files/file-watcher.ts";
export { DEFAULT_MAX_FILE_BYTES, type ReadFileOptions } from "./files/read-whole-file.ts";
export type { FileOptions, ListOptions, OwnershipOptions, ReadOptions, SandboxFiles } from "./files/sandbox-files.ts";
export { KeyedMutex } from "./keyed-mutex.ts";
export { fencedStateSchema, stateKey } from "./lease/fenced-state.ts";
export { type ClaimedState, FencedStates, type FencedStatesOptions } from "./lease/fenced-states.ts";
export type { Lease } from "./lease/lease.ts";
export { type Acquisition, Leases, type LeasesOptions, type WaitOptions } from "./lease/leases.ts";
export { type LockView, type LockWaiter, lockAtRest, lockKey } from "./lease/lock.ts";
export type { PreviousLease } from "./lease/lock-bid.ts";
export { type LockRepair, type RepairLockOptions, repairLock } from "./lease/repair-lock.ts";
export { type ExpiryReason, Lifetime, type LifetimeOptions, type LifetimePolicy } from "./lifetime/lifetime.ts";
export type { MachineInfo, Machines } from "./machines.ts";
export { DEFAULT_MAX_SANDBOXES, type ManagerConfig, type ManagerConfigOptions } from "./manager/manager-config.ts";
export type { ReconcileOptions, ReconcileResult } from "./manager/reconcile.ts";
export {
  type CreateOptions,
  type DestroyAllResult,
  type ManagerDependencies,
  type PreparedSandbox,
  type RegisterResult,
  SandboxManager,
} from "./manager/sandbox-manager.ts";
export type { GuestFlow } from "./network/guest-flow.ts";
export type { GuestNetwork } from "./network/guest-network.ts";
export type { GuestPort, PortEvent, PortWatcher, WatchPortsOptions } from "./network/listening-ports.ts";
export {
  type GuestDatagram,
  type GuestQuery,
  type NetworkHandler,
  type ServedNetwork,
  serveNetwork,
} from "./network/serve-network.ts";
export type { BackOffOptions } from "./pool/back-off.ts";
export type { WarmPoolStats } from "./pool/pool-shelf.ts";
export { WarmPool, type WarmPoolOptions } from "./pool/warm-pool.ts";
export { exec } from "./process/exec.ts";
export type { ProcessExit } from "./process/process-exit.ts";
export type { AttachOptions, ProcessHandle, StartOptions } from "./process/process-handle.ts";
export type { ProcessSummary } from "./process/process-summary.ts";
export type { StripTypes } from "./process/run-code.ts";
export type {
  CheckpointOptions,
  CheckpointRequirements,
  ConnectedChannel,
  CreateInstanceOptions,
  DestroyOptions,
  Instance,
  InstanceExit,
  InstanceRecord,
  InstanceSpec,
  KeptRelease,
  PingAgent,
  PreparedInstance,
  PrepareInstanceOptions,
  ProvideOptions,
  Provider,
  ProviderCapabilities,
  ProviderName,
  ProviderStatus,
  Releases,
  RequirementsOptions,
  ServiceCommand,
} from "./provider.ts";
export type { SandboxOptions } from "./sandbox/boot-sandbox.ts";
export { type RestoreOptions, Sandbox } from "./sandbox/sandbox.ts";
export { SandboxConfig, type SandboxConfigBuilder, type SandboxConfigOptions } from "./sandbox/sandbox-config.ts";
export type { SandboxMetrics } from "./sandbox/sandbox-metrics.ts";
export { canTransition, type SandboxState, sandboxTransitions } from "./sandbox/sandbox-state.ts";
export type { CheckpointTiming } from "./sandbox/save-instance.ts";
export { type StateNames, stateNames } from "./sandbox/state-names.ts";
export { checkObjectSize } from "./store/object-size.ts";
export type { ObjectStore, PutCondition, StoredObject, StoredObjectInfo } from "./store/object-store.ts";
export { checkStoreKey, checkStorePrefix } from "./store/store-key.ts";
