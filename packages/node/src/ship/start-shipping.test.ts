import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeClock } from "@sandpiper/core/testing";
import { createSandboxId } from "@sandpiper/protocol";
import { expect, it, onTestFinished } from "vitest";
import { AuditTrail } from "../audit/audit-trail.ts";
import { testChain } from "../audit/testing/test-chain.ts";
import { parseNodeConfig } from "../config/load-node-config.ts";
import { FlowLog } from "../flows/flow-log.ts";
import { flowRecord } from "../flows/testing/flow-record.ts";
import { SqliteEventLog } from "../records/sqlite-event-log.ts";
import { ScratchHome } from "../testing/scratch-home.ts";
import { startShipping } from "./start-shipping.ts";

it("ships a connection once, when it has ended, and the audit log of that file stays intact", async () => {
  const directory = mkdtempSync(join(tmpdir(), "sandpiper-ship-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const file = join(directory, "audit.jsonl");
  const home = new ScratchHome();
  const clock = new FakeClock();
  const flows = new FlowLog(home.database, { clock, maxPerSandbox: 10, maxPerTenant: 10 });
  const audit = new AuditTrail(home.database, { chain: testChain(), clock });
  const shipping = startShipping(parseNodeConfig({ home: home.path, ship: { file } }), {
    audit,
    events: new SqliteEventLog(home.database, { clock }),
    flows,
    node: "n",
    version: "1.2.3",
    clock,
    count: () => {},
    onTrouble: () => {},
  });
  const sandboxId = createSandboxId();
  const open = flowRecord({ sandboxId, endedAt: null });
  flows.opened(open, { tenant: "mine" });
  await clock.advance(100);
  const ended = { ...open, endedAt: open.at };
  flows.closed(ended, { tenant: "mine" });
  audit.note({ operation: "startProcess", sandboxId, status: 200, requestId: "r" });
  await clock.advance(100);
  audit[Symbol.dispose]();
  await shipping[Symbol.asyncDispose]();
  const text = readFileSync(file, "utf8");
  const lines = text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(lines.filter(({ type }) => type === "network")).toEqual([
    { type: "network", node: "n", tenant: "mine", ...ended },
  ]);
  const source = (async function* () {
    yield text;
  })();
  expect(await audit.verifyFile(source)).toMatchObject({ isIntact: true, entries: 1 });
});
