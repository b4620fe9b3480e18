import { onTestFinished } from "vitest";
import { TestClient } from "../../packages/node/src/socket/testing/test-client.ts";
import type { ClusterNode } from "./cluster-node.ts";

export type SessionMessage = Readonly<Record<string, unknown>>;

/** A session over its own WebSocket, without the SDK. */
export function rawSession(
  { url }: Pick<ClusterNode, "url">,
  path: string,
  options: { readonly credential: string; readonly cookie?: string },
): TestClient {
  const { credential, cookie } = options;
  const client = new TestClient(url.replace(/^http/, "ws") + path, { credential, headers: cookie ? { cookie } : {} });
  onTestFinished(() => client.terminate());
  return client;
}

/** The id and token that `WS /create` sends. */
export async function createdBy(client: TestClient): Promise<{ readonly id: string; readonly token: string }> {
  const [, named] = (await client.take(3)) as SessionMessage[];
  return { id: named?.["sandbox_id"] as string, token: named?.["token"] as string };
}

export const status = (name: string, fields: object = {}): SessionMessage => ({
  event: "status_update",
  status: `SANDBOX_${name}`,
  ...fields,
});

export const isStatus = (name: string) => (message: object) =>
  "status" in message && message.status === `SANDBOX_${name}`;

/** The output in these messages. */
export function printed(messages: readonly object[]): string {
  return messages.map((message) => ("data" in message ? message.data : "")).join("");
}
