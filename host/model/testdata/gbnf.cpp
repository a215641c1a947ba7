// Reads a JSON schema and writes the grammar (GBNF) that llama.cpp makes of it, by the library that
// node-llama-cpp brings without its headers. The program is for tests alone.
#include <exception>
#include <iostream>
#include <iterator>
#include <string>

// common_json is declared in part, as it is in llama.cpp. It takes less room there.
class common_json {
  public:
    static common_json parse(const std::string & text);
    ~common_json();

  private:
    alignas(16) char room[256];
};

std::string json_schema_to_grammar(const common_json & schema, bool force_gbnf);

int main() try {
    std::string text{std::istreambuf_iterator<char>(std::cin), {}};
    std::cout << json_schema_to_grammar(common_json::parse(text), true);
} catch (const std::exception & e) {
    std::cerr << e.what();
    return 1;
}
