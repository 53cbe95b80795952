/*
 * ptx.cpp - reads the text of asm statements, and runs them.
 */
#include "ptx.h"

#include <cctype>
#include <cstdlib>

namespace emulation
{
Type type_of(const std::string &word)
{
    if (word == "pred")
        return {'p', 1, 1};
    if (word == "f16x2")
        return {'f', 16, 2};
    if (word == "bf16x2")
        return {'h', 16, 2};
    if (word == "bf16")
        return {'h', 16, 1};
    return {word[0], atoi(word.c_str() + 1), 1};
}

static std::string trim(const std::string &text)
{
    size_t first = text.find_first_not_of(" \t\n\r"), last = text.find_last_not_of(" \t\n\r");
    return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

/* Cuts at `mark` outside of brackets. */
static std::vector<std::string> cut(const std::string &text, char mark)
{
    std::vector<std::string> pieces;
    int depth = 0;
    std::string piece;
    for (char c : text) {
        depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
        if (c == mark && !depth) {
            pieces.push_back(trim(piece));
            piece.clear();
        } else
            piece += c;
    }
    if (!trim(piece).empty())
        pieces.push_back(trim(piece));
    return pieces;
}

struct Reader {
    Program *program;
    std::vector<std::map<std::string, int>> scopes;
    std::map<std::string, int> labels;
    std::vector<std::pair<size_t, std::string>> branches;
    int used = MOST_OPERANDS;

    int find(const std::string &name) const
    {
        for (size_t i = scopes.size(); i > 0; i--) {
            auto found = scopes[i - 1].find(name);
            if (found != scopes[i - 1].end())
                return found->second;
        }
        return -1;
    }

    void declare(const std::string &text)
    {
        std::string rest = trim(text.substr(4)), names = rest.substr(rest.find_first_of(" \t") + 1); /* ".reg .b32 a, b" */
        for (const std::string &name : cut(names, ',')) {
            size_t open = name.find('<');
            int count = open == std::string::npos ? 1 : atoi(name.c_str() + open + 1);
            for (int i = 0; i < count && used < MOST_REGISTERS; i++)
                scopes.back()[open == std::string::npos ? name : name.substr(0, open) + std::to_string(i)] = used++;
        }
    }

    Operand operand(const std::string &given)
    {
        Operand made = {};
        std::string text = trim(given);
        if (text.empty() || text == "_") {
            made.kind = Operand::NONE;
            return made;
        }
        if (text[0] == '[' || text[0] == '{') {
            made.kind = text[0] == '[' ? Operand::MEMORY : Operand::VECTOR;
            std::vector<std::string> inside = cut(text.substr(1, text.size() - 2), ',');
            for (size_t i = 0; i < inside.size(); i++) {
                std::string part = inside[i];
                size_t sign = part.find_first_of("+", 1);
                if (made.kind == Operand::MEMORY && !i && sign != std::string::npos) {
                    made.number = strtoll(trim(part.substr(sign + 1)).c_str(), nullptr, 0);
                    part = trim(part.substr(0, sign));
                }
                made.parts.push_back(operand(part));
            }
            return made;
        }
        size_t bar = text.find('|');
        if (bar != std::string::npos) {
            made.kind = Operand::PAIR;
            made.parts = {operand(text.substr(0, bar)), operand(text.substr(bar + 1))};
            return made;
        }
        if (text[0] == '!') {
            made = operand(text.substr(1));
            made.negated = true;
            return made;
        }
        if (text[0] == '%' && isdigit((unsigned char)text[1])) {
            made.kind = Operand::REGISTER;
            made.index = atoi(text.c_str() + 1);
            return made;
        }
        int local = find(text);
        if (local >= 0) {
            made.kind = Operand::REGISTER;
            made.index = local;
            return made;
        }
        if (text[0] == '%') {
            made.kind = Operand::SPECIAL;
            made.name = text.substr(1);
            return made;
        }
        if (text[0] == '0' && (text[1] == 'f' || text[1] == 'F') && text.size() == 10) {
            made.kind = Operand::REAL;
            made.real = (double)__uint_as_float((uint32_t)strtoul(text.c_str() + 2, nullptr, 16));
            return made;
        }
        if (isdigit((unsigned char)text[0]) || text[0] == '-' || text[0] == '+') {
            if (text.find('.') != std::string::npos) {
                made.kind = Operand::REAL;
                made.real = strtod(text.c_str(), nullptr);
            } else {
                made.kind = Operand::NUMBER;
                made.number = text[0] == '-' ? strtoll(text.c_str(), nullptr, 0) : (int64_t)strtoull(text.c_str(), nullptr, 0);
            }
            return made;
        }
        made.kind = Operand::LABEL;
        made.name = text;
        return made;
    }

    void statement(const std::string &given)
    {
        std::string text = trim(given);
        if (text.empty())
            return;
        if (text.compare(0, 4, ".reg") == 0)
            return declare(text);
        Instruction made = {};
        made.predicate = -1;
        made.target = -1;
        if (text[0] == '@') {
            size_t space = text.find_first_of(" \t\n");
            std::string name = text.substr(1, space - 1);
            made.negated = name[0] == '!';
            Operand condition = operand(made.negated ? name.substr(1) : name);
            made.predicate = condition.kind == Operand::REGISTER ? condition.index : 0;
            if (condition.kind != Operand::REGISTER)
                program->unknown = "the predicate " + name;
            text = trim(text.substr(space));
        }
        size_t space = text.find_first_of(" \t\n");
        std::string opcode = text.substr(0, space);
        made.text = opcode;
        std::string word;
        for (size_t i = 0; i <= opcode.size(); i++)
            if (i == opcode.size() || (opcode[i] == '.' && i)) {
                made.words.push_back(word);
                word.clear();
            } else
                word += opcode[i];
        if (space != std::string::npos)
            for (const std::string &one : cut(text.substr(space), ','))
                made.operands.push_back(operand(one));
        if (made.words[0] == "bra")
            branches.push_back({program->instructions.size(), made.operands.empty() ? "" : made.operands[0].name});
        for (const std::string &one : made.words)
            made.digests.push_back(digest_of(one.c_str()));
        made.name = made.digests[0];
        made.type = made.from = type_of(made.words.back());
        if (made.words[0] == "cvt" && made.words.size() > 2)
            made.type = type_of(made.words[made.words.size() - 2]);
        made.handler = handler_find(made);
        if (!made.handler && made.words[0] != "bra" && program->unknown.empty())
            program->unknown = opcode;
        program->instructions.push_back(made);
    }

    void read(const std::string &text)
    {
        std::string piece;
        int depth = 0;
        scopes.emplace_back();
        for (size_t i = 0; i < text.size(); i++) {
            char c = text[i];
            if (c == '/' && text[i + 1] == '/') {
                while (i < text.size() && text[i] != '\n')
                    i++;
                continue;
            }
            const bool fresh = trim(piece).empty();
            if (c == '{' && fresh)
                scopes.emplace_back();
            else if (c == '}' && fresh && depth == 0)
                scopes.pop_back();
            else if (c == ';') {
                statement(piece);
                piece.clear();
            } else if (c == ':' && !depth && text[i + 1] != ':' && (i == 0 || text[i - 1] != ':')) {
                labels[trim(piece)] = (int)program->instructions.size();
                piece.clear();
            } else {
                depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
                piece += c;
            }
        }
        statement(piece);
        for (const auto &branch : branches) {
            auto found = labels.find(branch.second);
            if (found == labels.end())
                program->unknown = "bra " + branch.second;
            else
                program->instructions[branch.first].target = found->second;
        }
    }
};

/* In the template of an asm statement %% is a %, and %= a number. */
Program *program_parse(const char *text)
{
    std::string plain;
    for (const char *at = text; *at; at++)
        if (at[0] == '%' && at[1] == '%') {
            plain += '%';
            at++;
        } else if (at[0] == '%' && at[1] == '=') {
            plain += "0";
            at++;
        } else
            plain += *at;
    Program *program = new Program;
    Reader reader;
    reader.program = program;
    reader.read(plain);
    return program;
}

static std::map<const emulated_site *, const Program *> programs;

const Program *program_of(const emulated_site *sites, int site)
{
    const Program *&found = programs[&sites[site]];
    if (!found)
        found = program_parse(sites[site].text);
    return found;
}

static uint64_t narrow(uint64_t value, uint32_t bytes)
{
    return bytes >= 8 ? value : value & (((uint64_t)1 << 8 * bytes) - 1);
}

void program_run(const Program &program, const emulated_site &site, emulated_operand *operands, int count)
{
    Context context;
    context.operands = operands;
    context.operand_count = count;
    context.site = &site;
    if (!program.unknown.empty())
        stop_unknown(site, program.unknown.c_str());
    if (count > MOST_OPERANDS)
        stop_unknown(site, "an asm statement with so many operands");
    memset(context.written, 0, sizeof context.written);
    for (int i = 0; i < count; i++) {
        context.registers[i] = operands[i].value;
        if (operands[i].access == 'b') {
            context.registers[i] = 0;
            memcpy(&context.registers[i], operands[i].at, operands[i].bytes < 8 ? operands[i].bytes : 8);
        }
    }
    for (context.next = 0; context.next < (int)program.instructions.size();) {
        const Instruction &one = program.instructions[(size_t)context.next++];
        if (one.predicate >= 0 && (context.registers[one.predicate] != 0) == one.negated)
            continue;
        if (one.target >= 0)
            context.next = one.target;
        else
            one.handler(context, one);
    }
    for (int i = 0; i < count; i++)
        if (context.written[i / 64] >> (i % 64) & 1 && operands[i].at) {
            uint64_t value = narrow(context.registers[i], operands[i].bytes);
            memcpy(operands[i].at, &value, operands[i].bytes < 8 ? operands[i].bytes : 8);
        }
}
} // namespace emulation

extern "C" void emulated_execute(const emulated_site *sites, int site, emulated_operand *operands, int count)
{
    using namespace emulation;
    struct Cached {
        const emulated_site *sites;
        std::vector<const Program *> programs;
    };
    static Cached cached;
    if (cached.sites != sites) {
        cached.sites = sites;
        cached.programs.clear();
    }
    if (cached.programs.size() <= (size_t)site)
        cached.programs.resize((size_t)site + 64);
    if (!cached.programs[(size_t)site])
        cached.programs[(size_t)site] = program_of(sites, site);
    doubt_settle();
    self().site = __builtin_return_address(0);
    program_run(*cached.programs[(size_t)site], sites[site], operands, count);
}
