import type { Socket } from "node:net";
import { AgentClient, exec } from "@sandpiper/core";
import { LentChannel } from "../../host/lent-channel.ts";

/**
 * Runs commands in a guest so that its code is translated, and quiesces its agent. The socket can then be used like a
 * new one.
 */
export async function warmMachine(agent: Socket, signal: AbortSignal): Promise<void> {
  const channel = new LentChannel(agent, agent);
  const lose = () => channel.lose(new Error("the machine has ended"));
  agent.on("close", lose);
  const client = await AgentClient.open({ channel, needsResync: false }, { signal });
  try {
    // Both ways to run a command.
    await exec(client, { argv: ["true"] });
    await client.exec("true");
    await exec(client, { argv: ["true"] });
    await client.quiesce({ signal });
  } finally {
    client.close();
    agent.off("close", lose);
    // Keeps what arrives until the next channel reads it.
    agent.pause();
  }
}
