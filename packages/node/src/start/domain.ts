import { join } from "node:path";
import type { SecureContext } from "node:tls";
import type { Clock, Provider, Sandbox, SandboxError } from "@sandpiper/core";
import { completeNetwork, type NetworkBody, parseNetwork, type SandboxId } from "@sandpiper/protocol";
import { MomentaryUsage } from "../auth/momentary-usage.ts";
import { NodeAuthenticator } from "../auth/node-authenticator.ts";
import { RateLimit } from "../auth/rate-limit.ts";
import { AutomaticCheckpoints } from "../checkpoints/automatic-checkpoints.ts";
import { Checkpoints } from "../checkpoints/checkpoints.ts";
import { Forks } from "../checkpoints/forks.ts";
import { PreparedInstances } from "../checkpoints/prepared-instances.ts";
import { SaveRestore } from "../checkpoints/save-restore.ts";
import { SharedNames } from "../cluster/shared-names.ts";
import type { NodeConfig } from "../config/node-config.ts";
import { NodeContainers } from "../containers/node-containers.ts";
import { NodeMachines } from "../containers/node-machines.ts";
import { Rebuilds } from "../containers/rebuilds.ts";
import { Stops } from "../containers/stops.ts";
import { createProvider, type ProviderOptions, stripTypes } from "../embedded/create-provider.ts";
import { FlowApprovals } from "../flows/flow-approvals.ts";
import { FlowEvents } from "../flows/flow-events.ts";
import { HandoffReceiver } from "../handoff/handoff-receiver.ts";
import { HandoffSender } from "../handoff/handoff-sender.ts";
import type { HandoffReport } from "../handoff/handoff-steps.ts";
import { Locator } from "../handoff/locator.ts";
import { BodyLimits } from "../http/body-limits.ts";
import { Callers } from "../http/callers.ts";
import { configuredBundles, createNetworks } from "../network/create-networks.ts";
import { LeaseOwnership } from "../ownership/lease-ownership.ts";
import { StandaloneOwnership } from "../ownership/standalone-ownership.ts";
import { PortEvents } from "../preview/port-events.ts";
import { PreviewAddresses } from "../preview/preview-addresses.ts";
import { PreviewTokens } from "../preview/preview-tokens.ts";
import { Previews } from "../preview/previews.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import { Capacity } from "../sandboxes/capacity.ts";
import { EventFeed } from "../sandboxes/event-feed.ts";
import { HostReserve } from "../sandboxes/host-reserve.ts";
import { NetworkPolicies } from "../sandboxes/network-policies.ts";
import { defaultPolicy } from "../sandboxes/new-sandbox.ts";
import { NodePhase } from "../sandboxes/node-phase.ts";
import { NodePool } from "../sandboxes/node-pool.ts";
import { NodeVolumes } from "../sandboxes/node-volumes.ts";
import { Providers } from "../sandboxes/providers.ts";
import { SandboxAccess } from "../sandboxes/sandbox-access.ts";
import { SandboxNames } from "../sandboxes/sandbox-names.ts";
import { SandboxNetworks } from "../sandboxes/sandbox-networks.ts";
import { SandboxRegistry } from "../sandboxes/sandbox-registry.ts";
import { SandboxService } from "../sandboxes/sandbox-service.ts";
import { CertificateAuthority } from "../secrets/certificate-authority.ts";
import { installAuthority } from "../secrets/install-authority.ts";
import { SecretInterceptor } from "../secrets/secret-interceptor.ts";
import { SecretService } from "../secrets/secret-service.ts";
import { serverTrust } from "../secrets/server-trust.ts";
import { SealedStates } from "../store/sealed-states.ts";
import type { Storage } from "./storage.ts";

export interface DomainOptions {
  readonly clock: Clock;
  readonly phase?: NodePhase | undefined;
  /** Replaces the configured providers; for tests. */
  readonly providers?: readonly Provider[] | undefined;
  /** Ports of this machine that sandboxes never reach; the configured one by default. */
  readonly ownPorts?: (() => readonly number[]) | undefined;
  /** Receives what the lease guard must kill to end an instance. */
  readonly killList?: ProviderOptions["killList"];
  /** Receives the instant until which a sandbox may run here. */
  readonly onDeadline?: ((id: SandboxId, deadlineMs: number | undefined) => void) | undefined;
  /** Receives failures that no caller waits for. */
  readonly onError: (error: SandboxError, about: object) => void;
  /** Receives the steps of each handoff, on both nodes. */
  readonly onHandoff?: ((report: HandoffReport) => void) | undefined;
  /** Receives the name of each limit that refuses a request. */
  readonly onRefusal?: ((limit: string) => void) | undefined;
  readonly observeExec?: ((provider: string, seconds: number) => void) | undefined;
  readonly observeCheckpoint?: ((provider: string, seconds: number) => void) | undefined;
  readonly observeCreate?: ((provider: string, seconds: number, isWarm: boolean) => void) | undefined;
}

export type Domain = ReturnType<typeof createDomain>;

/** Everything that the node does, without its interfaces to the outside. Each part uses only parts above it. */
export function createDomain(config: NodeConfig, storage: Storage, options: DomainOptions) {
  const {
    cluster,
    store,
    keyring,
    checkpointStore,
    records,
    idempotency,
    keptVolumes,
    events,
    flows,
    database,
    tokens,
  } = storage;
  const { clock, phase = new NodePhase(), onHandoff, observeExec, observeCheckpoint, observeCreate } = options;
  const onError = (error: SandboxError, id: SandboxId) => options.onError(error, { sandboxId: id });
  const { defaultProvider, imagesDir, maxSandboxes, maxRecordBytes, rateLimits } = config;
  const { network, ...ownDefaults } = config.defaults;
  const defaults = {
    ...ownDefaults,
    provider: defaultProvider,
    containerImage: config.docker.image,
    checkpointPolicy: defaultPolicy(config.defaults.checkpoints, { isClustered: cluster !== undefined }),
  };

  const leaseOwnership = cluster && new LeaseOwnership({ ...cluster, onDeadline: options.onDeadline ?? (() => {}) });
  const ownership = leaseOwnership ?? new StandaloneOwnership(new SealedStates(store, keyring));
  const keys = cluster?.keys ?? storage.ownKeys;
  const momentary = new MomentaryUsage(keys);
  const reserve = HostReserve.of(config, clock);
  const { connectTimeoutMs } = config;
  const configured = options.providers ?? configuredProviders(config, options);
  const providers = new Providers({ providers: configured, imagesDir, connectTimeoutMs, onError, stripTypes });
  const pool = new NodePool({
    providers,
    defaults,
    reserve,
    clock,
    maxBoots: config.poolMaxBoots,
    maxAgeMs: config.poolMaxAgeMs,
    sweepIntervalMs: config.poolSweepMs,
    onError: (error) => options.onError(error, { pool: true }),
  });

  const secrets = new SecretService({
    store: new SealedStates(cluster?.control ?? store, keyring),
    isShared: cluster !== undefined,
    clock,
  });
  const authority = new CertificateAuthority({ keyring, clock });
  let trust: SecureContext | undefined;
  const prepare = (sandbox: Sandbox, record: SandboxRecord) =>
    record.secrets.length === 0 || sandbox.capabilities.network === "host"
      ? undefined
      : installAuthority(sandbox.files, authority.anchors);
  const registry = new SandboxRegistry({ records, events, momentary, clock, prepare, observeExec, onError });
  const flowEvents = new FlowEvents({ events, clock, onError: (error) => options.onError(error, { network: true }) });
  flows.subscribe((entries) => flowEvents.add(entries));
  const approvals = new FlowApprovals({ events: flowEvents, clock, timeoutMs: config.network.askTimeoutMs });
  events.subscribe(({ kind, sandboxId }) => {
    const leaves = kind === "sandbox.destroyed" || kind === "sandbox.moved";
    if (!leaves || sandboxId === null) return;
    approvals.end(sandboxId);
    flows.endFollowers(sandboxId);
  });
  const feed = new EventFeed({ events, registry, clock });
  const tokenOf = (id: SandboxId) => tokens.tokenOf(id);
  const access = new SandboxAccess({ registry, tokenOf, nodeId: cluster?.node.id ?? null });
  const capacity = new Capacity({
    registry,
    quotas: keys,
    shared: cluster?.quotas,
    reserve,
    maxSandboxes,
    maxRecordBytes,
  });
  const shared = { registry, access, capacity, providers, pool, ownership, checkpointStore, clock };
  const names = new SandboxNames({
    registry,
    shared:
      cluster &&
      new SharedNames({
        store: cluster.control,
        clock,
        isNamed: async (id, name) => (await ownership.peek(id))?.record.name === name,
      }),
  });
  const bundles = configuredBundles(config);
  const policies = new NetworkPolicies({ keys, bundles, defaultNetwork: parseNetwork(network) as NetworkBody });
  const networks = createNetworks(config, {
    clock,
    sink: flows,
    approvals,
    interceptor: new SecretInterceptor({
      secrets,
      authority,
      trust: () => (trust ??= serverTrust(config.network.extraCaFile)),
      usesOf: (id) => registry.running(id)?.record.secrets ?? [],
    }),
    ownPorts: options.ownPorts ?? (() => [config.port]),
    onError,
  });
  registry.observeAttached((sandbox, record) =>
    networks.serve(sandbox, record.tenant, record.network ?? completeNetwork("none")),
  );
  const sandboxNetworks = new SandboxNetworks({ ...shared, policies, networks });
  const volumes = new NodeVolumes({ records: keptVolumes, registry, providers, clock });
  const failedCreates = new RateLimit({
    name: "failed_creates",
    perSecond: rateLimits.failedCreatesPerMinute / 60,
    burst: rateLimits.failedCreatesPerMinute,
    clock,
    onRefusal: options.onRefusal,
  });
  const sandboxes = new SandboxService({
    ...shared,
    volumes,
    names,
    policies,
    secrets,
    idempotency,
    transaction: (work) => database.transaction(work),
    tokenOf,
    failedCreates,
    onError,
    defaults,
    observeCreate,
  });

  const saveRestore = new SaveRestore({ ...shared, observeCheckpoint, onError });
  const checkpoints = new Checkpoints({ ...shared, saveRestore, onDamaged: onError });
  const prepared = new PreparedInstances({ providers, clock, onError });
  const copies = { volumes, names, policies, failedCreates, sandboxes, checkpoints, saveRestore, prepared };
  const forks = new Forks({ ...shared, ...copies });
  const automatic = new AutomaticCheckpoints({
    clock,
    policyOf: (id) => registry.running(id)?.record.checkpointPolicy,
    save: (id) => checkpoints.createAutomatic(id),
    onError,
  });
  registry.observeActivity((id, next) => automatic.watch(id, next));
  const portEvents = new PortEvents({
    clock,
    watchPorts: (id, signal) => registry.instance(id).live.watchPorts(signal),
    listPorts: (id) => registry.instance(id).live.ports(),
    emit: (id, kind, port) => registry.emit(kind, registry.instance(id).record, { ...port }),
    onError,
  });
  registry.observeActivity((id, next) => portEvents.watch(id, next));
  registry.onEndChanged((record) => capacity.hold(record));
  registry.onFailed((id) => void checkpoints.recover(id).catch((error) => onError(error, id)));
  registry.onExpired((record, expired) => {
    const end = record.onExpiry === "pause" ? checkpoints.pauseNow(record.id) : sandboxes.destroy(record, { expired });
    end.catch((error) => options.onError(error, { sandboxId: record.id, expired }));
  });

  const rebuilds = new Rebuilds(shared);
  const stops = new Stops({ ...shared, checkpoints });
  const containers = new NodeContainers({ registry, providers, defaultProvider });
  const machines = new NodeMachines({ registry, providers });

  const handoffs =
    leaseOwnership &&
    new HandoffSender({ ...shared, ownership: leaseOwnership, saveRestore, stops, onHandoff, onError });
  const locator = new Locator({
    ...shared,
    checkpoints,
    stops,
    phase,
    cluster: cluster &&
      leaseOwnership && {
        nodeId: cluster.node.id,
        leases: cluster.leases,
        receiver: new HandoffReceiver({
          ...shared,
          nodeId: cluster.node.id,
          leases: cluster.leases,
          nudge: cluster.nudge,
          ownership: leaseOwnership,
          checkpoints,
          saveRestore,
          onHandoff,
        }),
      },
  });

  const previews = new Previews({
    ...shared,
    addresses: new PreviewAddresses({ ...config.previews, apiHosts: apiHostsOf(config) }),
    tokens: new PreviewTokens(keyring.keys("preview links")),
  });
  const authenticator = new NodeAuthenticator({ keys, tokens, records, cluster: cluster?.keys });
  const callers = new Callers({ ...config, authenticator, clock, onRefusal: options.onRefusal });
  const bodies = new BodyLimits({
    budgetBytes: config.bodyBudgetBytes,
    timeoutMs: config.bodyTimeoutMs,
    clock,
    onRefusal: options.onRefusal,
  });
  return {
    clock,
    phase,
    registry,
    capacity,
    momentary,
    reserve,
    feed,
    flows,
    approvals,
    networkBundles: bundles,
    networks,
    sandboxNetworks,
    access,
    providers,
    pool,
    ownership,
    leaseOwnership,
    secrets,
    sandboxes,
    checkpoints,
    forks,
    prepared,
    rebuilds,
    stops,
    containers,
    volumes,
    machines,
    handoffs,
    locator,
    previews,
    records,
    keys,
    authenticator,
    callers,
    bodies,
    onError,
  };
}

/** Names that serve the API even if they are below the domain of previews. */
function apiHostsOf({ advertiseUrl }: NodeConfig): readonly string[] {
  return advertiseUrl === null ? [] : [new URL(advertiseUrl).hostname];
}

/** Uses its own directory, so that embedded programs do not remove a node's sandboxes. */
function configuredProviders(
  { home, defaultProvider, providers, qemu, ...config }: NodeConfig,
  { killList }: Pick<DomainOptions, "killList">,
): Provider[] {
  const { connectTimeoutMs } = config;
  const firecracker = { ...config.firecracker, kernel: config.firecracker.kernel ?? undefined, connectTimeoutMs };
  const { url, runtime, ...rest } = config.docker;
  const docker = { ...rest, url: url ?? undefined, runtime: runtime ?? undefined };
  const { machineImage, kernel, initrd } = config.vmDocker;
  const vmDocker = {
    ...config.vmDocker,
    machineImage: machineImage ?? undefined,
    kernel: kernel ?? undefined,
    initrd: initrd ?? undefined,
  };
  return [...new Set([defaultProvider, ...providers])].map((name) =>
    createProvider(name, { home: join(home, "node"), docker, qemu, firecracker, vmDocker, killList }),
  );
}
