import type { InstanceSpec } from "@sandpiper/core";
import { createSandboxId } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import type { EngineImage } from "../image/image.ts";
import { containerConfig } from "./container-config.ts";
import { serviceOf } from "./service.ts";

const id = createSandboxId();
const spec = {
  id,
  memoryMib: 256,
  vcpuCount: 0.5,
  maxProcesses: 100,
  env: { TOKEN: "secret" },
  labels: { note: "secret" },
} as unknown as InstanceSpec;
const command = { argv: ["serve"], cwd: "/srv", user: "app:staff" };
const image = { id: "sha256:1", user: "", labels: {}, command } as unknown as EngineImage;
const config = (runtime?: string, more: Partial<EngineImage> = {}, container?: InstanceSpec["container"]) =>
  containerConfig({
    spec: { ...spec, container },
    image: { ...image, ...more },
    mounts: [],
    home: "0123456789ab",
    runtime,
    channel: "stdio",
  });

describe("the configuration of a container", () => {
  it("limits memory without swap, CPU time, and processes plus those of the agent", () => {
    expect(config().HostConfig).toMatchObject({
      Memory: 256 << 20,
      MemorySwap: 256 << 20,
      CpuPeriod: 100_000,
      CpuQuota: 50_000,
      PidsLimit: 108,
      ShmSize: 128 << 20,
    });
  });

  it("adds gVisor's own needs to the limits, and lets gVisor limit the processes inside", () => {
    const { Memory, PidsLimit, Ulimits, Runtime } = config("runsc").HostConfig ?? {};
    expect({ Memory, PidsLimit, Runtime }).toEqual({ Memory: 320 << 20, PidsLimit: 656, Runtime: "runsc" });
    expect(Ulimits).toContainEqual({ Name: "nproc", Soft: 100, Hard: 100 });
  });

  it("lets the agent set up the network of a container without one, and leaves networks of the engine alone", () => {
    expect(config().Cmd).toEqual(expect.arrayContaining(["--network", "private"]));
    expect(config().HostConfig).toMatchObject({ NetworkMode: "none", CapAdd: expect.arrayContaining(["NET_ADMIN"]) });
    const joined = config(undefined, {}, { network: "bridge" });
    expect(joined.Cmd).not.toContain("--network");
    expect(joined.HostConfig?.CapAdd).not.toContain("NET_ADMIN");
    expect(joined.HostConfig?.Dns).toBeUndefined();
  });

  it("contains neither the environment nor the labels of the sandbox", () => {
    expect(JSON.stringify(config())).not.toContain("secret");
    expect(config().Env).toBeUndefined();
    expect(Object.keys(config().Labels ?? {}).every((name) => name.startsWith("sandpiper."))).toBe(true);
  });

  it.each([
    [{ user: "" }, "user"],
    [{ user: "app" }, "app"],
    [{ user: "app:staff" }, "app"],
    [{ user: "7:8" }, "7:8"],
    [{ user: "0:0", labels: { "sandpiper.user": "app" } }, "app"],
  ])("uses the user of image %o by default", (more, user) => {
    expect(config(undefined, more).Cmd).toEqual(expect.arrayContaining(["--default-user", user]));
  });

  it("keeps the original image in the labels of a container restored from a checkpoint", () => {
    expect(config().Labels).toMatchObject({ "sandpiper.image": "sha256:1" });
    expect(config(undefined, { labels: { "sandpiper.image": "sha256:0" } }).Labels).toMatchObject({
      "sandpiper.image": "sha256:0",
    });
  });

  it("has the caller's labels, which never replace Sandpiper's own", () => {
    const labels = { team: "a", "sandpiper.home": "stolen", "sandpiper.image": "stolen" };
    expect(config(undefined, {}, { labels }).Labels).toMatchObject({
      team: "a",
      "sandpiper.home": "0123456789ab",
      "sandpiper.image": "sha256:1",
    });
  });

  it("keeps the image's own command for a service, also when it is restored from a checkpoint", () => {
    const service = { restart: "always" } as const;
    const { Labels = {} } = config(undefined, {}, { service });
    const wanted = {
      argv: ["/.sandpiper/agent", "--service", "always", "--", "serve"],
      cwd: "/srv",
      user: "app",
    };
    expect(serviceOf({ ...spec, container: { service } }, Labels)).toEqual(wanted);
    const agent = { argv: ["/.sandpiper/agent"], cwd: "/", user: "0:0" };
    const restored = config(undefined, { labels: Labels, command: agent }, { service }).Labels ?? {};
    expect(serviceOf({ ...spec, container: { service } }, restored)).toEqual(wanted);
    expect(serviceOf(spec, config().Labels ?? {})).toBeUndefined();
  });

  it("ignores a label of an image that is not a command", () => {
    const service = {};
    for (const text of ["{", "[]", '{"argv":"x","cwd":"/","user":""}']) {
      const { Labels = {} } = config(undefined, { labels: { "sandpiper.command": text } }, { service });
      expect(serviceOf({ ...spec, container: { service } }, Labels)?.argv.at(-1), text).toBe("serve");
    }
  });
});
