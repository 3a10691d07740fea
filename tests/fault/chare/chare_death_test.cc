// Kills a real process while calls with data arguments are under way with it. The test starts itself under
// `brant run --keep-going`; rank 1 dies by SIGKILL, and on every other rank the program must end with an error that
// names it, soon, and leave nothing behind (the processes end normally, so that a sanitizer looks for leaks).
#include <array>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brant/chare.h"
#include "brant/core/timer.h"
#include "support/killed_process.h"

namespace brant {
namespace {

constexpr int kRanks = 3;

/// Where rank 1 is when it dies.
enum class Scene {
  running,
  reading_loans,
  in_post_entry,
  data_coming,
  data_going,
  broadcasting,
  calling_a_section,
  asked
};
struct SceneName {
  Scene scene;
  const char* name;
  std::size_t bytes;
};
constexpr SceneName kScenes[] = {
    {Scene::running, "running_small", 1000},
    {Scene::running, "running_large", 6'000'000},
    {Scene::reading_loans, "reading_loans", 1'000'000},
    {Scene::in_post_entry, "in_post_entry_small", 1000},
    {Scene::in_post_entry, "in_post_entry_large", 6'000'000},
    {Scene::data_coming, "data_coming", 30'000'000},
    {Scene::data_going, "data_going", 30'000'000},
    {Scene::broadcasting, "broadcasting", 6'000'000},
    {Scene::calling_a_section, "calling_a_section", 6'000'000},
    {Scene::asked, "asked", 6'000'000},
};
SceneName g_scene{};

/// Faces fly between all elements without end.
class DoomedBlock : public Chare<DoomedBlock> {
 public:
  void face(DeviceData data, int step) {
    if (dies() && g_scene.scene == Scene::running && ++runs_ == 25) test::die();
    pass_on(static_cast<int>(data.bytes() % 7) + step + 1);
  }
  Buffer post(Post<&DoomedBlock::face>, const DeviceMeta& meta, int step) {
    if (dies() && g_scene.scene == Scene::in_post_entry && ++runs_ == 25) test::die();
    if (dies() && g_scene.scene == Scene::data_coming && ++runs_ == 3) die_soon();
    if (step % 3 == 0) return {};  // the runtime's memory, at times
    Memory& ghost = ghosts_[static_cast<std::size_t>(step) % ghosts_.size()];
    if (ghost.bytes() < meta.bytes) ghost = allocate(meta.bytes);
    return ghost;
  }
  /// Between processes of one host these items lie in the memory of the caller's.
  void bulk(std::span<const int> items) {
    if (dies() && ++runs_ == 25) test::die();
    std::vector<int> mine(items.begin(), items.end());
    const int step = ++mine.front();
    pass_on(mine, step);
  }
  void shared(const DeviceData& data) { runs_ += data.bytes() == g_scene.bytes ? 1 : 0; }

  void begin(Section<DoomedBlock> section) {
    face_ = allocate(g_scene.bytes);
    if (dies() && g_scene.scene == Scene::data_going) {
      for (int i = 0; i < 4; ++i) pass_on(i);
      return die_soon();
    }
    if (dies() && g_scene.scene == Scene::broadcasting) {
      this_array().call<&DoomedBlock::shared>(device(face_));
      return die_soon();
    }
    if (dies() && g_scene.scene == Scene::calling_a_section) {
      section.call<&DoomedBlock::shared>(device(face_));
      return die_soon();
    }
    if (g_scene.scene == Scene::reading_loans) {
      return pass_on(std::vector<int>(g_scene.bytes / sizeof(int), index()[0]), index()[0]);
    }
    if (g_scene.scene != Scene::asked) pass_on(index()[0]);
  }
  Task<int> answer(DeviceData data) {
    if (dies()) die_soon();
    co_await sleep_for(chares().runtime().worker(), std::chrono::seconds(30));
    co_return static_cast<int>(data.bytes());
  }
  Task<void> last_breath() {
    co_await sleep_for(chares().runtime().worker(), std::chrono::microseconds(500));
    test::die();
  }

 private:
  [[nodiscard]] bool dies() const { return chares().rank().value == 1; }
  Memory allocate(std::size_t bytes) {
    Runtime& runtime = chares().runtime();
    return runtime.allocate(runtime.device_kind(), bytes);
  }
  /// When what was begun is half done.
  void die_soon() { this_element().call<&DoomedBlock::last_breath>(); }
  auto next(int step) {
    const int elements = this_array().extent()[0];
    return this_array()[(index()[0] + 1 + step % (elements - 1)) % elements];
  }
  void pass_on(int step) { next(step).call<&DoomedBlock::face>(device(face_), step); }
  void pass_on(std::span<const int> items, int step) { next(step).call<&DoomedBlock::bulk>(items); }

  Memory face_;
  std::array<Memory, 5> ghosts_;
  int runs_ = 0;
};

Task<void> scene(Chares& chares) {
  const auto blocks = create_array<DoomedBlock>(chares, 2 * chares.size(), Placement::round_robin());
  const auto section = make_section(chares, blocks, [](const Index<1>& at) { return at[0] != 3; });
  blocks.call<&DoomedBlock::begin>(section);
  if (g_scene.scene == Scene::asked) {
    Memory face = chares.runtime().allocate(chares.runtime().device_kind(), g_scene.bytes);
    try {
      static_cast<void>(co_await blocks[1].ask<&DoomedBlock::answer>(device(face)));
      std::fprintf(stderr, "the dead answered\n");
    } catch (const Error& error) {
      std::printf("%s for who asked\n", error.status() == Status::peer_lost ? "peer_lost" : error.what());
    }
  }
  co_await chares.until_exit();
}

/// A message each way between all pairs. UCX 1.22 crashes in a survivor whose peer dies while the two connect
/// (docs/gotchas/ucx.md), and it connects at the first message.
Task<void> meet_all(Runtime& runtime) {
  for (int other = 0; other < runtime.size(); ++other) {
    const int self = runtime.rank().value;
    if (other == self) continue;
    Channel channel = Channel::open(runtime, Rank{other}, ChannelId{static_cast<std::uint32_t>(100 + self + other)});
    std::vector<std::byte> mine(20'000), theirs(20'000);
    Operation incoming = channel.recv(std::span(theirs));
    Operation outgoing = channel.send(std::span<const std::byte>(mine), Moment::delivered);
    EXPECT_TRUE((co_await incoming).ok());
    EXPECT_TRUE((co_await outgoing).ok());
  }
}

int play(const std::string& name) {
  for (const SceneName& known : kScenes) {
    if (name == known.name) g_scene = known;
  }
  if (g_scene.name == nullptr) return 2;
  Runtime runtime;
  runtime.run(meet_all(runtime));
  {
    Chares chares(runtime);
    const int code = chares.run(scene(chares));
    test::say_if_late();
    std::printf("ended with %d\n", code);
  }
  return 0;
}

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

class ChareDeath : public testing::TestWithParam<SceneName> {};

TEST_P(ChareDeath, ends_the_program_with_one_error_that_names_the_rank) {
  test::expect_of_plays(GetParam().name, kRanks, [](const std::string& text, int code) {
    EXPECT_NE(text.find("[0] ended with 1"), std::string::npos) << text;
    EXPECT_NE(text.find("[2] ended with 1"), std::string::npos) << text;
    EXPECT_EQ(code, 128 + SIGKILL) << text;
    const std::size_t asked = GetParam().scene == Scene::asked ? 1 : 0;
    EXPECT_EQ(count(text, "[0] peer_lost for who asked"), asked) << text;
    // Each survivor says it once at most: who was told by another does not say it again.
    std::size_t told = 0;
    for (const char* rank : {"[0] brant[0] error: ", "[2] brant[2] error: "}) {
      EXPECT_LE(count(text, rank), 1u) << text;
      const std::size_t at = text.find(rank);
      if (at == std::string::npos) continue;
      const std::string line = text.substr(at, text.find('\n', at) - at);
      EXPECT_NE(line.find("rank 1"), std::string::npos) << text;
      EXPECT_NE(line.find("peer_lost"), std::string::npos) << text;
      ++told;
    }
    EXPECT_GE(told, 1u) << text;
    EXPECT_EQ(text.find("Sanitizer: "), std::string::npos) << text;
  });
}
INSTANTIATE_TEST_SUITE_P(Scenes, ChareDeath, testing::ValuesIn(kScenes),
                         [](const auto& scene) { return std::string(scene.param.name); });

const testing::Environment* const g_environment = testing::AddGlobalTestEnvironment(new test::SceneEnvironment(play));

}  // namespace
}  // namespace brant
