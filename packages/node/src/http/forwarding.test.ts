import { createSandboxId, type SandboxResource } from "@sandpiper/protocol";
import { MockProvider } from "@sandpiper/providers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { NUDGE_PATH } from "../cluster/nudge.ts";
import { type StoreNode, StoreNodes } from "../handoff/testing/store-nodes.ts";
import { errorOf } from "./testing/test-node.ts";

let nodes: StoreNodes;
/** The node that is asked, and the one that owns the sandbox. */
let asked: StoreNode;
let owner: StoreNode;
let sandbox: SandboxResource;

beforeEach(async () => {
  nodes = new StoreNodes();
  [asked, owner] = [await nodes.start("a", new MockProvider()), await nodes.start("b", new MockProvider())];
  sandbox = await owner.create();
});

afterEach(() => nodes[Symbol.asyncDispose]());

const path = (rest = "") => `/v1/sandboxes/${sandbox.id}${rest}`;

describe("a request about a sandbox that another node owns", () => {
  it("is answered by the owner, with the key of a client that this node has not seen before", async () => {
    const as = await owner.keyOf("mine");
    const response = await asked.request("POST", path("/exec"), { json: { command: "echo hi" }, as });
    expect(await response.json()).toMatchObject({ exitCode: 0, stdout: "hi\n" });
    expect(asked.registry.record(sandbox.id)).toBeUndefined();
  });

  it("is audited by the owner alone", async () => {
    await asked.request("POST", path("/exec"), { json: { command: "true" } });
    const operations = ({ audit }: StoreNode) => audit.list({ after: 0, limit: 100 }).map(({ operation }) => operation);
    expect(operations(owner)).toContain("execInSandbox");
    expect(operations(asked)).not.toContain("execInSandbox");
  });

  it("counts towards the rate of its key at the node that is asked, and not again at the owner", async () => {
    const as = await owner.keyOf("mine");
    const principal = await owner.authenticator.admit(as);
    const exhaust = () => {
      for (;;) owner.callers.count(principal);
    };
    expect(exhaust).toThrow("too many requests");
    const refused = await owner.request("GET", path(), { as });
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "1"]);
    expect((await asked.request("GET", path(), { as })).status).toBe(200);
  });

  it("is refused without a valid credential, without looking for the sandbox", async () => {
    const response = await asked.request("POST", path("/exec"), { json: { command: "true" }, as: "spk_00000000_x" });
    expect(await errorOf(response)).toMatchObject({ status: 401, reason: "bad_credential" });
  });

  it("is forwarded with the sandbox's own token, and refused with another sandbox's", async () => {
    const get = (as: string) => asked.request("GET", path(), { as });
    expect(await (await get(sandbox.token as string)).json()).toMatchObject({ id: sandbox.id });
    const other = await owner.create();
    expect(await errorOf(await get(other.token as string))).toMatchObject({ status: 404 });
  });

  it("does not exist for another tenant", async () => {
    const response = await asked.request("GET", path(), { as: await owner.keyOf("others") });
    expect(await errorOf(response)).toMatchObject({ status: 404, reason: "no_such_sandbox" });
  });

  it("gets the owner's events about the sandbox, and this node's own about all sandboxes", async () => {
    const kinds = async (query: string) => {
      const { items } = (await (await asked.request("GET", `/v1/events${query}`)).json()) as { items: EventItem[] };
      return items.map(({ kind }) => kind);
    };
    expect(await kinds(`?sandbox=${sandbox.id}`)).toContain("sandbox.created");
    expect(await kinds("")).not.toContain("sandbox.created");
    expect(await kinds(`?sandbox=${createSandboxId()}`)).toEqual([]);
  });

  it("is checked by the owner alone", async () => {
    const response = await asked.request("POST", path("/exec"), { json: { command: 7 } });
    expect(await errorOf(response)).toMatchObject({ status: 400 });
  });

  it("is not forwarded again by a node that has lost the sandbox meanwhile", async () => {
    const third = await nodes.start("c", new MockProvider());
    const proof = asked.proof.sign({ method: "GET", path: path() }, third.url);
    const headers = { authorization: `Bearer ${sandbox.token}`, "x-sandpiper-node": proof };
    const response = await fetch(`${third.url}${path()}`, { headers });
    expect(await errorOf(response)).toMatchObject({ status: 503, reason: "sandbox_moved" });
  });

  it("counts towards the rate of its address if it claims falsely to come from a node", async () => {
    const counted = vi.spyOn(owner.callers, "countAnonymous");
    const headers = { authorization: `Bearer ${sandbox.token}`, "x-sandpiper-node": "x" };
    await fetch(`${owner.url}${path()}`, { headers });
    expect(counted).toHaveBeenCalledTimes(1);
    await fetch(`${owner.url}${NUDGE_PATH}`, { method: "POST", headers, body: "{}" });
    expect(counted).toHaveBeenCalledTimes(2);
    await fetch(`${owner.url}${NUDGE_PATH}`, { method: "POST", body: "{}" });
    expect(counted).toHaveBeenCalledTimes(3);
  });

  it("is refused if it claims falsely to come from a node", async () => {
    const headers = { authorization: `Bearer ${sandbox.token}`, "x-sandpiper-node": "x" };
    const response = await fetch(`${owner.url}${path()}`, { headers });
    expect(await errorOf(response)).toMatchObject({ status: 401, reason: "bad_node_proof" });
  });
});

interface EventItem {
  readonly kind: string;
}
