import { describe, expect, it } from "vitest";
import { advertisedUrl } from "./advertised-url.ts";

const config = { advertiseUrl: null, host: "10.0.0.7", port: 4747, tls: { certFile: null, keyFile: null } };

describe("a node's advertised URL", () => {
  it("is its listening address unless it is configured", () => {
    expect(advertisedUrl(config)).toBe("http://10.0.0.7:4747");
    expect(advertisedUrl({ ...config, host: "fd00::1", tls: { certFile: "/c", keyFile: "/k" } })).toBe(
      "https://[fd00::1]:4747",
    );
    expect(advertisedUrl({ ...config, host: "0.0.0.0", advertiseUrl: "https://a.example" })).toBe("https://a.example");
  });

  it.each([{ host: "0.0.0.0" }, { host: "::" }, { port: 0 }])(
    "is null with %j unless it is configured",
    (listening) => {
      expect(advertisedUrl({ ...config, ...listening })).toBeNull();
      expect(advertisedUrl({ ...config, ...listening, advertiseUrl: "http://a:1" })).toBe("http://a:1");
    },
  );
});
