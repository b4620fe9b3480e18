import { describe, expect, it } from "vitest";
import { Client } from "../client.ts";
import { createMemoryServer } from "../testing/create-memory-server.ts";
import { CookieJar } from "./cookie-jar.ts";

function headers(...lines: readonly string[]): Headers {
  const all = new Headers();
  for (const line of lines) all.append("set-cookie", line);
  return all;
}

describe("the cookies of a client", () => {
  it("are those of earlier answers; of two with the same name, the newer", () => {
    const jar = new CookieJar();
    expect(jar.header).toBeUndefined();
    jar.take(headers("SERVERID=node-a; path=/; HttpOnly", "other=x=y"));
    expect(jar.header).toBe("SERVERID=node-a; other=x=y");
    jar.take(headers("SERVERID=node-b; Expires=Fri, 31 Dec 9999 23:59:59 GMT"));
    expect(jar.header).toBe("SERVERID=node-b; other=x=y");
  });

  it.each(["Max-Age=0", "max-age=-1", "Expires=Thu, 01-Jan-1970 00:00:01 GMT"])("are deleted by %s", (attribute) => {
    const jar = new CookieJar();
    jar.take(headers("SERVERID=node-a"));
    jar.take(headers(`SERVERID=; ${attribute}; path=/`));
    expect(jar.header).toBeUndefined();
  });

  it("ignore headers that are not cookies", () => {
    const jar = new CookieJar();
    jar.take(headers("nothing", "=nameless"));
    expect(jar.header).toBeUndefined();
  });

  it("are sent with every later request, and by no other client", async () => {
    const { clientOptions } = createMemoryServer();
    const sent: (string | null)[] = [];
    const fetch: typeof globalThis.fetch = async (input, init) => {
      sent.push(new Headers(init?.headers).get("cookie"));
      const answer = await clientOptions.fetch(input, init);
      answer.headers.append("set-cookie", `SERVERID=node-${sent.length}; path=/`);
      return answer;
    };
    const client = new Client({ ...clientOptions, fetch });
    await client.health();
    await client.health();
    // An error answer also sets cookies.
    await client.sandboxes.connect("x").catch(() => {});
    await client.health();
    expect(sent).toEqual([null, "SERVERID=node-1", "SERVERID=node-2", "SERVERID=node-3"]);
    await new Client({ ...clientOptions, fetch }).health();
    expect(sent.at(-1)).toBeNull();
  });
});
