import { describe, expect, it } from "vitest";
import { requireSafeBind } from "./bind-check.ts";

const noTls = { certFile: null, keyFile: null };
const bind =
  (host: string, more: object = {}) =>
  () =>
    requireSafeBind({ host, tls: noTls, allowInsecure: false, ...more });

describe("listening without TLS", () => {
  it.each(["127.0.0.1", "127.1.2.3", "::1", "localhost", "LOCALHOST"])("is fine on %s", (host) => {
    expect(bind(host)).not.toThrow();
  });

  it.each(["0.0.0.0", "::", "192.168.1.4", "example.com", "localhost.example.com", "::ffff:10.0.0.1", "fe80::1"])(
    "is refused on %s, with what to do instead",
    (host) => {
      expect(bind(host)).toThrow(
        expect.objectContaining({ reason: "insecure_bind", hint: expect.stringContaining("--allow-insecure") }),
      );
      expect(bind(host, { allowInsecure: true })).not.toThrow();
      expect(bind(host, { tls: { certFile: "/c", keyFile: "/k" } })).not.toThrow();
    },
  );
});
