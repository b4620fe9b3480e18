import { shared } from "../host/testing/shared.ts";
import { describeService } from "./testing/describe-service.ts";
import { createDockerFixture } from "./testing/fixture.ts";

describeService("the service of a Docker container", await shared(createDockerFixture()));
