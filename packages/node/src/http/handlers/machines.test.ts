import { type MachineInfo, SandboxError } from "@sandpiper/core";
import { createSandboxId, type SandboxId } from "@sandpiper/protocol";
import { MockContainers, MockProvider } from "@sandpiper/providers";
import { describe, expect, it } from "vitest";
import { tenantProject } from "../../sandboxes/tenant-project.ts";
import { errorOf, nodeOfTest } from "../testing/test-node.ts";

function machine(fields: Partial<MachineInfo> & Pick<MachineInfo, "id">): MachineInfo {
  const size = { memoryMib: 2048, vcpuCount: 2, diskMib: 4096 };
  const startedAt = new Date("2026-01-01T00:00:00Z");
  return { project: "shop", state: "ready", sandboxes: [], startedAt, error: undefined, ...size, ...fields };
}

async function setUp() {
  const running: MachineInfo[] = [];
  const stopped: string[] = [];
  const provider = new MockProvider({
    containers: new MockContainers({ "python:3.13-slim": "sha256:default" }),
    machines: {
      list: async () => running,
      readConsole: async (id) => `console of ${id}`,
      stop: async (id) => void stopped.push(id),
    },
  });
  const node = await nodeOfTest({ provider });
  return {
    ...node,
    provider,
    running,
    stopped,
    admin: node.key({ scopes: ["admin"] }),
    other: node.key({ tenant: "other" }),
  };
}

describe("the machines of projects", () => {
  it("are listed and shown to their tenant and to an admin, with the tenant's name of the project", async () => {
    const { running, request, create, admin, other } = await setUp();
    const { id } = await create();
    const project = tenantProject("mine", "shop");
    running.push(machine({ id: "a1", project, sandboxes: [id as SandboxId, createSandboxId()] }));
    const shown = { id: "a1", project: "shop", provider: "mock", state: "ready", sandboxes: [id], error: null };
    expect(await (await request("GET", "/v1/machines")).json()).toMatchObject({ items: [shown] });
    expect(await (await request("GET", "/v1/machines/a1")).json()).toMatchObject({
      ...shown,
      console: "console of a1",
    });
    expect(await (await request("GET", "/v1/machines", { key: other })).json()).toEqual({ items: [] });
    expect(await errorOf(await request("GET", "/v1/machines/a1", { key: other }))).toMatchObject({ status: 404 });
    expect(await (await request("GET", "/v1/machines", { key: admin })).json()).toMatchObject({ items: [{ project }] });
  });

  it("are stopped by their tenant or an admin; while sandboxes use them only with force", async () => {
    const { running, stopped, request, admin, other } = await setUp();
    const users = [createSandboxId()];
    running.push(
      machine({ id: "a1", project: tenantProject("mine", "shop"), sandboxes: users }),
      machine({ id: "b2" }),
    );
    const stop = (id: string, json: object, key?: string) =>
      request("POST", `/v1/machines/${id}/stop`, { json, ...(key === undefined ? {} : { key }) });
    const refused = await errorOf(await stop("a1", {}));
    expect(refused).toMatchObject({ status: 412, reason: "machine_in_use", details: { sandboxes: users } });
    expect(await errorOf(await stop("a1", { force: true }, other))).toMatchObject({ reason: "no_such_machine" });
    expect(await errorOf(await stop("b2", {}))).toMatchObject({ reason: "no_such_machine" });
    expect(stopped).toEqual([]);
    expect((await stop("a1", { force: true })).status).toBe(204);
    expect((await stop("b2", {}, admin)).status).toBe(204);
    expect(stopped).toEqual(["a1", "b2"]);
  });

  it("show why they failed, without internal names and paths of the host", async () => {
    const { running, request } = await setUp();
    const project = tenantProject("mine", "shop");
    const failed = (id: string, error: SandboxError) => machine({ id, project, state: "error", error });
    running.push(
      failed("a1", new SandboxError("machine_ended", { message: `the machine of project ${project} has ended` })),
      failed("b2", new SandboxError("unexpected", { message: "cannot open /srv/secret" })),
    );
    const listed = await (await request("GET", "/v1/machines")).text();
    expect(listed).toContain("the machine of project shop has ended");
    expect(listed).not.toContain("/srv/secret");
  });
});

describe("a sandbox of a provider with machines", () => {
  it("belongs to its tenant's default project if it names none", async () => {
    const { create, provider } = await setUp();
    const { id } = await create();
    const [record] = (await provider.list()).filter((found) => found.id === id);
    expect(record?.spec.container?.project).toBe(tenantProject("mine"));
  });

  it("cannot be in a warm pool, which has no project", async () => {
    const { request, admin } = await setUp();
    const answer = await request("PUT", "/v1/pools", { key: admin, json: { provider: "mock", target: 1 } });
    expect(await errorOf(answer)).toMatchObject({ status: 400, reason: "project_required" });
  });
});
