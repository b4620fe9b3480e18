import { rejection, settle } from "@sandpiper/protocol/testing";
import { describe, expect, it } from "vitest";
import { connectedAgent } from "../testing/scripted-agent.ts";
import { watchPorts } from "./listening-ports.ts";

const port = { port: 8080, address: "0.0.0.0", pid: 41, program: "python3" };

describe("watching ports", () => {
  it("reports the open ports first and then each change, until the reader leaves", async () => {
    const { agent, client } = await connectedAgent();
    agent.on("port.watch", ({ message }) => {
      const lines = [{ kind: "opened", ...port }, { kind: "ready" }, { kind: "closed", ...port }];
      agent.data(message, new TextEncoder().encode(lines.map((line) => `${JSON.stringify(line)}\n`).join("")));
    });
    const events = watchPorts(client);
    expect((await events.next()).value).toEqual({ kind: "opened", ...port });
    expect((await events.next()).value).toEqual({ kind: "closed", ...port });
    await events[Symbol.asyncDispose]();
    await settle();
    expect(agent.sent("cancel")).toHaveLength(1);
  });

  it("rejects with unimplemented for an agent of an earlier generation", async () => {
    const { agent, client } = await connectedAgent();
    agent.on("port.watch", ({ message }) => agent.fail(message, { code: "unimplemented", reason: "unknown_method" }));
    expect(await rejection(watchPorts(client).next())).toMatchObject({ code: "unimplemented" });
  });
});
