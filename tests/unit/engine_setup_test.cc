// What an engine refuses, and how it shares out what it is given.

#include "tests/unit/engine_rig.h"

namespace tutti::drive {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(EngineSetup, AllProblemsAreNamedAtOnce) {
  EngineConfig config;
  config.workers = 0;
  config.target.urls = {"ftp://a/", "http://user:geheim@"};
  config.target.headers = {{"X-Bad", "a\r\nb"}, {"No Token", "v"}};
  config.target.request_timeout = Duration::seconds(-1);
  const base::SystemClock clock;
  const auto engine = Engine::start(config, clock);
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, base::ExitCode::kSetup);
  const std::string& text = engine.error().message;
  EXPECT_THAT(text, HasSubstr("workers is 0"));
  EXPECT_THAT(text, HasSubstr("no request bodies"));
  EXPECT_THAT(text, HasSubstr("request timeout is negative"));
  EXPECT_THAT(text, HasSubstr("ftp"));
  EXPECT_THAT(text, HasSubstr("X-Bad"));
  EXPECT_THAT(text, HasSubstr("No Token"));
  EXPECT_THAT(text, Not(HasSubstr("geheim")));
}

TEST(EngineSetup, NoMoreWorkersThanSlotsOrConnections) {
  EngineRig slots({"http://127.0.0.1:1/"});
  slots.config.workers = 4;
  slots.config.slots = 3;
  EXPECT_EQ(slots.engine().workers(), 3U);
  EngineRig connections({"http://127.0.0.1:1/"});
  connections.config.workers = 4;
  connections.config.slots = 100;
  connections.config.target.connections_max = 2;
  EXPECT_EQ(connections.engine().workers(), 2U);
}

TEST(EngineSetup, AnEngineThatDidNothingStopsCleanly) {
  EngineRig rig({"http://127.0.0.1:1/"});
  rig.config.workers = 3;
  rig.config.slots = 3;
  rig.engine().stop();
  rig.engine().stop();
  rig.poll_once();
  EXPECT_TRUE(rig.records.empty());
}

}  // namespace
}  // namespace tutti::drive
