import { SandboxError } from "@sandpiper/core";
import type Docker from "dockerode";
import { unlessAborted } from "../../host/unless-aborted.ts";
import type { Endpoint } from "./endpoint.ts";
import { engineAgent } from "./engine-agent.ts";
import { engineError } from "./engine-error.ts";

/** Docker 20.10. Older engines do not report cgroup version 2, and no longer get fixes. */
const OLDEST_API = "1.41";
/** The newest version that this code supports: later versions drop fields that it reads. */
const NEWEST_API = "1.51";
const CONNECT_TIMEOUT_MS = 10_000;

export interface EngineInfo {
  readonly serverVersion: string;
  /** The API version in use. */
  readonly apiVersion: string;
  readonly isPodman: boolean;
  /** As images name it: amd64, arm64, … */
  readonly architecture: string;
  readonly os: string;
  /** Installed runtimes. */
  readonly runtimes: readonly string[];
  readonly defaultRuntime: string;
  /** Containers keep running during a restart of the engine. */
  readonly isLiveRestore: boolean;
  readonly cgroupVersion: string;
}

/** A connected container engine, with an API version that both sides support. */
export class Engine implements Disposable {
  readonly endpoint: Endpoint;
  readonly info: EngineInfo;
  /** Use inside `call`, which converts errors. */
  readonly docker: Docker;

  private constructor(endpoint: Endpoint, docker: Docker, info: EngineInfo) {
    this.endpoint = endpoint;
    this.docker = docker;
    this.info = info;
  }

  static async connect(endpoint: Endpoint, signal?: AbortSignal): Promise<Engine> {
    const limit = AbortSignal.timeout(CONNECT_TIMEOUT_MS);
    const abortSignal = signal === undefined ? limit : AbortSignal.any([signal, limit]);
    const doing = "connect to the container engine";
    try {
      // Loaded on demand: it slows the start of programs that use no engine.
      const { default: Client } = await import("dockerode");
      const client = (apiVersion?: string) => new Client(clientOptions(endpoint, apiVersion));
      const version = await (client() as unknown as Introduction).version({ abortSignal });
      const apiVersion = commonApiVersion(version, endpoint);
      const docker = client(apiVersion);
      const info = await (docker as unknown as Introduction).info({ abortSignal });
      return new Engine(endpoint, docker, engineInfo(apiVersion, version, info));
    } catch (thrown) {
      if (limit.aborted && signal?.aborted !== true) throw silent(endpoint, doing);
      throw engineError(thrown, doing, endpoint);
    }
  }

  /**
   * Runs calls of the engine, and converts what they throw into an error that names the operation. The signal also ends the
   * wait for calls that the client library cannot abort.
   */
  async call<T>(doing: string, work: (docker: Docker) => Promise<T>, signal?: AbortSignal): Promise<T> {
    try {
      return await (signal === undefined ? work(this.docker) : unlessAborted(() => work(this.docker), signal));
    } catch (thrown) {
      throw engineError(thrown, doing, this.endpoint);
    }
  }

  /** Like `call`, but resolves to undefined when the object does not exist. */
  async find<T>(doing: string, work: (docker: Docker) => Promise<T>, signal?: AbortSignal): Promise<T | undefined> {
    return await this.call(doing, work, signal).catch((error: SandboxError) => {
      if (error.code === "not_found") return undefined;
      throw error;
    });
  }

  /** Sends a request that the client library has no method for. */
  async dial(doing: string, request: Parameters<Docker["modem"]["dial"]>[0]): Promise<unknown> {
    return await this.call(doing, ({ modem }) => {
      const { promise, resolve, reject } = Promise.withResolvers<unknown>();
      modem.dial(request, (error, answer) => (error ? reject(error) : resolve(answer)));
      return promise;
    });
  }

  /** Closes idle connections. */
  [Symbol.dispose](): void {
    (this.docker.modem as { readonly agent?: { destroy(): void } }).agent?.destroy();
  }
}

function clientOptions(endpoint: Endpoint, apiVersion?: string): Docker.DockerOptions {
  const { url, tls } = endpoint;
  const isUnix = url.protocol === "unix:";
  // Every option is set, even to undefined: the client library takes missing ones from the environment.
  const options = {
    socketPath: isUnix ? decodeURIComponent(url.pathname) : undefined,
    host: isUnix ? undefined : url.hostname,
    port: isUnix ? undefined : url.port,
    protocol: url.protocol === "https:" ? "https" : "http",
    pathPrefix: "/",
    ca: tls?.ca,
    cert: tls?.cert,
    key: tls?.key,
    timeout: undefined,
    agent: engineAgent(endpoint),
    version: apiVersion === undefined ? undefined : `v${apiVersion}`,
  };
  return options as Docker.DockerOptions;
}

/** Calls that accept an abort signal, which the types of dockerode omit. */
interface Introduction {
  version(options: { readonly abortSignal: AbortSignal }): Promise<VersionAnswer>;
  info(options: { readonly abortSignal: AbortSignal }): Promise<InfoAnswer>;
}

type VersionAnswer = Partial<Docker.DockerVersion>;

interface InfoAnswer {
  readonly Runtimes?: Readonly<Record<string, unknown>>;
  readonly DefaultRuntime?: string;
  readonly LiveRestoreEnabled?: boolean;
  readonly CgroupVersion?: string;
}

function engineInfo(apiVersion: string, version: VersionAnswer, info: InfoAnswer): EngineInfo {
  const isPodman = version.Components?.some((component) => component.Name?.startsWith("Podman")) ?? false;
  const defaultRuntime = info.DefaultRuntime ?? "runc";
  return {
    serverVersion: version.Version ?? "unknown",
    apiVersion,
    isPodman,
    architecture: version.Arch ?? "unknown",
    os: version.Os ?? "linux",
    // Podman also lists runtimes that are not installed.
    runtimes: isPodman ? [defaultRuntime] : Object.keys(info.Runtimes ?? {}),
    defaultRuntime,
    isLiveRestore: info.LiveRestoreEnabled ?? false,
    cgroupVersion: info.CgroupVersion ?? "1",
  };
}

function commonApiVersion(version: VersionAnswer, endpoint: Endpoint): string {
  const newest = version.ApiVersion;
  const oldest = version.MinAPIVersion ?? "1.0";
  if (newest === undefined) {
    throw new SandboxError("not_an_engine", {
      message: `${endpoint.url.href} (${endpoint.origin}) is not a container engine`,
    });
  }
  if (minor(newest) < minor(OLDEST_API) || minor(oldest) > minor(NEWEST_API)) {
    throw new SandboxError("engine_version", {
      message: `the engine at ${endpoint.url.href} (version ${version.Version ?? "unknown"}) supports API ${oldest} to ${newest}; Sandpiper supports ${OLDEST_API} to ${NEWEST_API}`,
      hint: "use Docker 20.10 or newer; if the engine is too new, update Sandpiper",
    });
  }
  return minor(newest) < minor(NEWEST_API) ? newest : NEWEST_API;
}

/** All API versions so far are 1.x. */
function minor(version: string): number {
  const [major = "0", rest = "0"] = version.split(".");
  return Number(major) === 1 ? Number(rest) : Number(major) * 1000;
}

function silent(endpoint: Endpoint, doing: string): SandboxError {
  return new SandboxError("engine_unreachable", {
    message: `could not ${doing}: ${endpoint.url.href} (${endpoint.origin}) did not answer within ${CONNECT_TIMEOUT_MS / 1000} s`,
    hint: "check with `docker version` whether the engine hangs",
  });
}
