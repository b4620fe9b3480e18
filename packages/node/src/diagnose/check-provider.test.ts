import { type Provider, SandboxError } from "@sandpiper/core";
import { describe, expect, it } from "vitest";
import { checkProvider } from "./check-provider.ts";

const failing = (parts: Partial<Provider>) => ({ name: "gvisor", capabilities: {}, ...parts }) as unknown as Provider;

describe("checkProvider", () => {
  it("fails with the provider's reason and hint when it is not available", async () => {
    const provider = failing({ probe: async () => ({ available: false, reason: "no runsc", hint: "build one" }) });
    expect(await checkProvider(provider)).toEqual({
      name: "provider gvisor",
      status: "failed",
      detail: "no runsc",
      hint: "build one",
    });
  });

  it("only warns when a container engine is missing, and pulls no image", async () => {
    const capabilities = { supportsContainers: true } as Provider["capabilities"];
    const away = failing({
      capabilities,
      probe: async () => ({ available: false, reason: "no engine", hint: "start" }),
    });
    expect(await checkProvider(away)).toMatchObject({ status: "warning", detail: "no engine", hint: "start" });
    const provider = failing({
      capabilities,
      probe: async () => ({ available: true, detail: "Docker 29" }),
      create: ({ container }) => {
        expect(container).toEqual({ imagePullPolicy: "never" });
        return Promise.reject(new SandboxError("image_not_found", { message: "no image" }));
      },
    });
    expect(await checkProvider(provider)).toMatchObject({
      status: "ok",
      detail: "Docker 29; not tried, because the default image is not pulled yet",
    });
  });

  it("only warns when an optional provider is not available", async () => {
    const provider = failing({ probe: async () => ({ available: false, reason: "no KVM", hint: "use another" }) });
    const check = await checkProvider(provider, { isOptional: true });
    expect(check).toMatchObject({ status: "warning", detail: "no KVM", hint: "use another" });
  });

  it("only probes a provider that would start a virtual machine", async () => {
    const provider = failing({
      capabilities: { supportsContainers: true } as Provider["capabilities"],
      probe: async () => ({ available: true, detail: "QEMU 7" }),
      machines: {} as NonNullable<Provider["machines"]>,
      create: () => Promise.reject(new Error("the check created an instance")),
    });
    expect(await checkProvider(provider)).toMatchObject({ status: "ok", detail: "QEMU 7; not tried" });
  });

  it("does not make a provider fetch its images", async () => {
    const provider = failing({
      probe: async () => ({ available: true, detail: "not fetched yet", isFirstUse: true }),
      create: () => Promise.reject(new Error("the check created an instance")),
    });
    expect(await checkProvider(provider)).toMatchObject({ status: "ok", detail: "not fetched yet" });
  });

  it("fails when the probe succeeds and a sandbox does not start", async () => {
    const provider = failing({
      probe: async () => ({ available: true, detail: "looks fine" }),
      create: () => Promise.reject(new SandboxError("boot_failed", { message: "it did not boot", hint: "look" })),
    });
    expect(await checkProvider(provider)).toMatchObject({ status: "failed", detail: "it did not boot", hint: "look" });
  });
});
