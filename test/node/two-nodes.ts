import type { NodeConfigOptions } from "@sandpiper/node/server";
import { Client } from "@sandpiper/sdk";
import { freePort } from "../../packages/node/src/store/testing/free-port.ts";
import { handOff } from "../cluster/hand-off.ts";
import { NodeProcess } from "./node-process.ts";

interface Home {
  config(settings: NodeConfigOptions): NodeConfigOptions;
}

/** Two nodes of one cluster, and a client of each that uses the same key. */
export async function startTwoNodes(homes: readonly [Home, Home], options: { store: string; leaseMs: number }) {
  const settings = { ...options, clusterSecret: "a secret of a test, long enough", maxSkewMs: 0, drainMs: 60_000 };
  await using undo = new AsyncDisposableStack();
  const start = async (home: Home) =>
    undo.use(await NodeProcess.start(home.config({ ...settings, port: await freePort() })));
  const first = await start(homes[0]);
  const second = await start(homes[1]);
  const { apiKey } = first.started;
  const there = undo.use(new Client({ url: second.started.url, apiKey }));
  const owned = undo.move();
  return {
    first,
    second,
    here: first.client,
    there,
    /** Hands a sandbox of the first node off to the second. */
    bring: ({ id }: { readonly id: string }) => handOff(second.started, id, apiKey),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
