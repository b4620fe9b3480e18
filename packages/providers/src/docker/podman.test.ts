import { afterAll, beforeAll } from "vitest";
import { describeContract } from "./testing/describe-contract.ts";
import { createEngineFixture, type EngineFixture } from "./testing/engine-fixture.ts";
import { startPodman } from "./testing/podman.ts";

let fixture: EngineFixture;
beforeAll(async () => {
  fixture = await createEngineFixture(startPodman);
}, 300_000);
afterAll(() => fixture?.[Symbol.asyncDispose]());

describeContract("docker on Podman", () => fixture);
