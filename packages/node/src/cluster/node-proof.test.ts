import { FakeClock } from "@sandpiper/core/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { NodeProof } from "./node-proof.ts";

const key = new Uint8Array(32).fill(7);
const request = { method: "POST", path: "/v1/cluster/nudge?x=1", body: Buffer.from("{}") };
const [a, b] = [
  { id: "00000000-0000-4000-8000-00000000000a", url: "http://a:1" },
  { id: "00000000-0000-4000-8000-00000000000b", url: "http://b:1" },
];

let clock: FakeClock;
let asker: NodeProof;
let asked: NodeProof;

beforeEach(() => {
  clock = new FakeClock();
  asker = new NodeProof({ key, node: a, clock });
  asked = new NodeProof({ key, node: b, clock });
});

const refused = expect.objectContaining({ code: "unauthenticated", reason: "bad_node_proof" });

describe("a node's proof", () => {
  it("tells which node asks, without the secret", () => {
    const header = asker.sign(request, b.url);
    expect(asked.verify(header, request)).toBe(a.id);
    expect(header).not.toContain(Buffer.from(key).toString("base64url"));
  });

  it("is good once", async () => {
    const header = asker.sign(request, b.url);
    asked.verify(header, request);
    await clock.advance(29_000);
    expect(() => asked.verify(header, request)).toThrow(refused);
  });

  it("is good for half a minute, before and after", async () => {
    const header = asker.sign(request, b.url);
    const early = new FakeClock();
    await clock.advance(30_001);
    expect(() => asked.verify(header, request)).toThrow(refused);
    const fromAhead = asker.sign(request, b.url);
    const behind = new NodeProof({ key, node: b, clock: early });
    expect(() => behind.verify(fromAhead, request)).toThrow(refused);
    await early.advance(1);
    expect(behind.verify(fromAhead, request)).toBe(a.id);
    await early.advance(59_000);
    expect(() => behind.verify(fromAhead, request), "while it is still in its time").toThrow(refused);
  });

  it.each([
    ["another method", { ...request, method: "GET" }],
    ["another path", { ...request, path: "/v1/cluster/nudge" }],
    ["another body", { ...request, body: Buffer.from("{ }") }],
    ["no body", { method: request.method, path: request.path }],
  ])("is not good for %s", (_, other) => {
    expect(() => asked.verify(asker.sign(request, b.url), other)).toThrow(refused);
  });

  it("is not good at another node, with another secret, or in any other form", () => {
    const stranger = new NodeProof({ key: new Uint8Array(32), node: a, clock });
    const header = asker.sign(request, b.url);
    const wrong = [
      asker.sign(request, "http://c:1"),
      stranger.sign(request, b.url),
      header.replace(a.id, b.id),
      header.slice(0, -1),
      `${header} `,
      "",
      a.id,
    ];
    for (const each of wrong) expect(() => asked.verify(each, request), each).toThrow(refused);
    expect(asked.verify(header, request), "wrong ones use up nothing").toBe(a.id);
  });
});
