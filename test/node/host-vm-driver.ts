import { once } from "node:events";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Tunnel } from "@sandpiper/core";
import { DockerProvider } from "../../packages/providers/src/docker/provider.ts";
import type { DockerFixture } from "../../packages/providers/src/docker/testing/fixture.ts";
import { ProjectDisks } from "../../packages/providers/src/vm-docker/disk/project-disks.ts";
import { VmDockerProvider } from "../../packages/providers/src/vm-docker/provider.ts";
import { ProjectVms } from "../../packages/providers/src/vm-docker/vm/project-vms.ts";
import type { OrphanVm, Vm, VmDriver } from "../../packages/providers/src/vm-docker/vm/vm-driver.ts";
import {
  HostWorkspaces,
  type HostWorkspacesOptions,
} from "../../packages/providers/src/vm-docker/workspace/host-workspaces.ts";
import { machineImages } from "./vm-docker-home.ts";

type Place = Pick<DockerFixture, "stateDirectory" | "url" | "image">;

/** Runs the engine on this host instead of in a machine: the provider uses it in the same way, without minutes of boot. */
class HostVmDriver implements VmDriver {
  readonly name = "qemu";
  readonly #place: Place;
  readonly #orphans: OrphanVm[];

  constructor(place: Place, orphans: readonly OrphanVm[] = []) {
    this.#place = place;
    this.#orphans = [...orphans];
  }

  async probe() {
    return { available: true, detail: "an engine of this machine" } as const;
  }

  async start(projectId: string): Promise<Vm> {
    const { stateDirectory: directory, url: engineUrl } = this.#place;
    const exited = Promise.withResolvers<{ reason: "destroyed"; message: string }>();
    const destroy = async () => exited.resolve({ reason: "destroyed", message: "it was destroyed" });
    const common = { id: "host", projectId, directory, engineUrl, consoleLog: undefined, keepsVolumes: true };
    return { ...common, exited: exited.promise, dial, destroy };
  }

  async listOrphans(): Promise<readonly OrphanVm[]> {
    return this.#orphans.splice(0);
  }

  adopt(): Promise<Vm> {
    return this.start("shop");
  }

  async remove(): Promise<void> {}
}

export interface HostProviderOptions
  extends Partial<Pick<HostWorkspacesOptions, "allowedPaths" | "gitHosts" | "maxBytes" | "isPublicAddress">> {
  readonly orphans?: readonly OrphanVm[] | undefined;
}

/** The provider with an engine of this host in place of a machine's. */
export function hostVmDockerProvider(place: Place, options: HostProviderOptions = {}): VmDockerProvider {
  const driver = new HostVmDriver(place, options.orphans);
  const workspaces = new HostWorkspaces({
    directory: join(tmpdir(), "sandpiper-test-workspaces"),
    allowedPaths: [],
    ownPaths: [],
    gitHosts: [],
    isPublicAddress: () => false,
    maxBytes: 2 ** 30,
    ...options,
  });
  return new VmDockerProvider({
    vms: new ProjectVms({ driver, resources: { memoryMib: 512, vcpuCount: 1, diskMib: 1024 } }),
    probe: () => driver.probe(),
    images: machineImages(place.stateDirectory),
    defaultImage: place.image,
    workspaces,
    disks: new ProjectDisks({ directory: join(place.stateDirectory, "projects"), sizeMib: 64 }),
    createEngineProvider: ({ directory, engineUrl }, clock) =>
      new DockerProvider({
        stateDirectory: directory,
        engineUrl,
        image: place.image,
        clock,
        networks: ["bridge"],
        readWorkspace: (workspace, given) => workspaces.archive(workspace, given),
      }),
  });
}

async function dial(port: number): Promise<Tunnel> {
  const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true });
  await once(socket, "connect");
  const closed = once(socket, "close").then(() => {});
  closed.catch(() => {});
  const close = () => void socket.destroy();
  return {
    readable: socket,
    write: (bytes) => new Promise((resolve) => socket.write(bytes, () => resolve())),
    end: () => new Promise((resolve) => socket.end(() => resolve())),
    close,
    closed,
    [Symbol.asyncDispose]: async () => close(),
  };
}
