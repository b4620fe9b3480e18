import { availableParallelism } from "node:os";
import { join } from "node:path";
import { type Clock, SandboxError } from "@sandpiper/core";
import { findAgent } from "../host/find-agent.ts";
import { InstanceStore } from "../host/instance-store.ts";
import { Semaphore } from "../host/semaphore.ts";
import { type AgentStreams, agentStreams } from "./channel/agent-streams.ts";
import type { NetworkPolicy } from "./container/network.ts";
import { Engine } from "./engine/engine.ts";
import { findEndpoint } from "./engine/find-endpoint.ts";
import { homeOf } from "./engine/labels.ts";
import { EngineEvents } from "./events/engine-events.ts";
import { AgentVolume } from "./storage/agent-volume.ts";
import type { PathPolicy } from "./storage/binds.ts";

const DEFAULT_IMAGE = "python:3.13-slim";
const DEFAULT_NETWORKS = ["bridge"];
/** gVisor, which stands between the container and the kernel where an engine has it. */
const PREFERRED_RUNTIME = "runsc";
/** More of them at once only make each of them slower: an engine does most of it one after the other. */
const BOOTS_PER_PROCESSOR = 2;

/** What the processors that Node.js runs on are called in Go's words. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "amd64", arm64: "arm64" };

export interface DockerOptions {
  readonly stateDirectory: string;
  /** Of sandboxes that name none. */
  readonly image?: string | undefined;
  /** Where the engine is, instead of where the environment says. */
  readonly engineUrl?: string | undefined;
  /** Directories of the engine's machine that sandboxes may be lent, with all that is below them; none unless given. */
  readonly allowedPaths?: readonly string[] | undefined;
  /** Networks that sandboxes may join, beside none. */
  readonly networks?: readonly string[] | undefined;
  /** What runs containers; gVisor where the engine has it, else the engine's own choice. */
  readonly runtime?: string | undefined;
}

/** Everything that containers are made with. */
export interface DockerHost extends NetworkPolicy {
  readonly stateDirectory: string;
  /** By which this home's containers and volumes are told from those of others on the same engine. */
  readonly home: string;
  readonly store: InstanceStore;
  readonly engine: Engine;
  readonly events: EngineEvents;
  readonly agentVolume: AgentVolume;
  readonly agentStreams: AgentStreams;
  readonly image: string;
  readonly runtime: string | undefined;
  readonly paths: PathPolicy;
  readonly boots: Semaphore;
}

/** Looks for what containers need; what is missing is said with what to do about it. */
export async function findDockerHost(options: DockerOptions, clock: Clock): Promise<DockerHost> {
  const { stateDirectory } = options;
  const agent = findAgent();
  const endpoint = await findEndpoint(options.engineUrl);
  const engine = await Engine.connect(endpoint);
  requireSameProcessor(engine);
  requireRuntime(engine, options.runtime);
  const home = homeOf(stateDirectory);
  const isRemote = endpoint.url.protocol !== "unix:";
  return {
    stateDirectory,
    home,
    store: new InstanceStore(join(stateDirectory, "docker/instances")),
    engine,
    events: new EngineEvents({ engine, home, clock }),
    agentVolume: new AgentVolume({ engine, agent, home }),
    agentStreams: agentStreams(engine),
    image: options.image ?? DEFAULT_IMAGE,
    runtime: options.runtime ?? engine.info.runtimes.find((name) => name === PREFERRED_RUNTIME),
    boots: new Semaphore(BOOTS_PER_PROCESSOR * availableParallelism()),
    networks: options.networks ?? DEFAULT_NETWORKS,
    paths: {
      allowedPaths: options.allowedPaths ?? [],
      ownPaths: [stateDirectory, ...(isRemote ? [] : [decodeURIComponent(endpoint.url.pathname)])],
      isRemote,
    },
  };
}

/** The agent that is put into containers was built for this machine. */
function requireSameProcessor({ info, endpoint }: Engine): void {
  const own = ARCHITECTURES[process.arch] ?? process.arch;
  if (info.os === "linux" && info.architecture === own) return;
  throw new SandboxError("failed_precondition", {
    reason: "engine_architecture",
    message: `the engine at ${endpoint.url.href} runs ${info.os}/${info.architecture}, and the agent here is for linux/${own}`,
    hint: "use an engine on the same kind of machine, or set SANDPIPER_AGENT to an agent that was built for it",
  });
}

/** Docker refuses a runtime that it does not have; Podman would use its own instead, and say nothing. */
function requireRuntime({ info, endpoint }: Engine, runtime: string | undefined): void {
  if (runtime === undefined || !info.isPodman || runtime === info.defaultRuntime) return;
  throw new SandboxError("failed_precondition", {
    reason: "runtime_not_chosen",
    message: `the engine at ${endpoint.url.href} is Podman, which runs all containers with ${info.defaultRuntime} and not with ${runtime}`,
    hint: `set runtime = "${runtime}" in the section [engine] of its containers.conf, and start it again`,
  });
}
