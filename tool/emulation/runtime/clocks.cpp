/*
 * clocks.cpp - what happens before what, for shared memory.
 *
 * Every byte of shared memory has the last write and the reads since, each as (agent, time). An access is a race unless the clock of
 * the one who begins it is ahead of all that it conflicts with: barriers, mbarriers and waits are what moves clocks (release,
 * acquire). So a race is seen whatever order the threads ran in. Bytes are kept in chunks of 16 as long as they are all accessed
 * alike, which copies and products do; a chunk that is accessed by words, halves or bytes has a cell for each of those.
 *
 * What was written by the generic proxy can be read or overwritten by the asynchronous one (bulk copies, wgmma) only behind a
 * proxy fence on the way: the second half of a clock says what is.
 */
#include "emulator.h"

#include <algorithm>

namespace emulation
{
Agents agents;
bool proxies;

#if defined(__x86_64__)
__attribute__((target_clones("default", "arch=x86-64-v3"), optimize("O3")))
#endif
static void
join_range(Time *to, const Time *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = to[i] > from[i] ? to[i] : from[i];
}

static void join_times(std::vector<Time> &own, const std::vector<Time> &other)
{
    if (own.size() < other.size())
        own.resize(other.size());
    join_range(own.data(), other.data(), other.size());
}

void Clock::join(const Clock &other)
{
    join_times(known, other.known);
    if (proxies)
        join_times(fenced, other.fenced);
}

void Clock::clear()
{
    known.assign((size_t)agents.count, 0);
    fenced.assign(proxies ? (size_t)agents.count : 0, 0);
}

struct Event {
    Time time; /* 0: none */
    int32_t agent, thread;
    Site site;
    const char *what;
};

struct Cell {
    Event write, read; /* the only read, or */
    uint32_t reads;    /* a list of them */
    uint32_t writers;  /* a list of stores before `write` that are not ordered with it, and stored the same */
    bool async, atomic, barrier, atomic_read;
};

constexpr uint32_t CHUNK = 16;
struct Chunk {
    Cell whole;
    uint32_t parts; /* if they differ: sixteen cells, of which every `grain`th is in use */
    uint32_t grain;
};

struct Reads {
    std::vector<Event> events;
    size_t full; /* when to look which of them still matter */
};
constexpr size_t FEW_READS = 16;

static std::vector<Chunk> chunks[MOST_BLOCKS];
static std::vector<Cell> parts;
static std::vector<Reads> lists;
static std::vector<uint32_t> free_lists, free_parts;

static uint32_t list_new()
{
    if (free_lists.empty()) {
        lists.emplace_back();
        return (uint32_t)lists.size() - 1;
    }
    uint32_t found = free_lists.back();
    free_lists.pop_back();
    return found;
}

void shared_reset(int count, uint32_t bytes)
{
    parts.clear();
    lists.resize(std::max(lists.size(), (size_t)1));
    free_lists.clear();
    for (uint32_t i = 1; i < lists.size(); i++)
        free_lists.push_back(i);
    free_parts.clear();
    for (int rank = 0; rank < count; rank++)
        chunks[rank].assign((bytes + CHUNK - 1) / CHUNK, Chunk{});
}

static bool is_product(const Event &event)
{
    return event.agent >= agents.products && event.agent < agents.barriers;
}

static std::string race_text(uint32_t offset, const Event &before, bool wrote, const Access &now)
{
    char text[700];
    snprintf(text, sizeof text,
             "a race on shared address %u: %s (%s%s) and %s that %s it (%s%s) are not ordered by a barrier, a wait or a fence",
             SHARED_BASE + offset, now.what, thread_text(now.thread).c_str(), site_text(now.site).c_str(), before.what,
             wrote ? "wrote" : "read", thread_text(before.thread).c_str(), site_text(before.site).c_str());
    return text;
}

/* A write over what a wgmma reads makes the product of no use, and its result must not be used: a kernel may multiply what is about to
 * be overwritten, for nobody. A store that changes nothing is none. */
static void overwrite(int rank, uint32_t offset, uint32_t span, const Event &read, const Access &now)
{
    const Torn product = {read.agent - agents.products, read.time, now.site};
    const std::string text = race_text(offset, read, false, now);
    if (now.agent < agents.copies)
        doubt_add(shared_bytes_of(Place{rank, offset}), span, text, product);
    else
        product_torn(product, text);
}

[[noreturn]] static void race(uint32_t offset, const Event &before, bool wrote, const Access &now)
{
    stop("%s", race_text(offset, before, wrote, now).c_str());
}

/* A kernel may read more than it uses; what was in shared memory before is other rubbish in every order, so that it shows if it is
 * used. */
static void note_unwritten(uint32_t offset, const Access &now)
{
    char text[300];
    snprintf(text, sizeof text, "%s reads shared address %u, which nothing was written to (%s%s)", now.what, SHARED_BASE + offset,
             thread_text(now.thread).c_str(), site_text(now.site).c_str());
    note_torn(now.site, Site{}, text);
}

/* The last write, or one that stored the same and is ordered before the access; NULL if none is. */
static const Event *ordered_write(const Cell &cell, const std::vector<Time> &known)
{
    if (cell.write.time <= known[(size_t)cell.write.agent])
        return &cell.write;
    if (cell.writers)
        for (const Event &one : lists[cell.writers].events)
            if (one.time <= known[(size_t)one.agent])
                return &one;
    return nullptr;
}

static bool is_behind(const Event &read, const Access &now, const Cell &cell)
{
    return read.time <= now.clock->known[(size_t)read.agent] || (cell.atomic_read && now.atomic);
}

static void check_reads(int rank, uint32_t offset, uint32_t span, const Cell &cell, const Access &now)
{
    const Event *reads = cell.reads ? lists[cell.reads].events.data() : &cell.read;
    const size_t count = cell.reads ? lists[cell.reads].events.size() : cell.read.time ? 1 : 0;
    for (size_t i = 0; i < count; i++)
        if (!is_behind(reads[i], now, cell)) {
            if (!is_product(reads[i]))
                race(offset, reads[i], false, now);
            overwrite(rank, offset, span, reads[i], now);
        }
}

static void check_cell(int rank, uint32_t offset, uint32_t span, Cell &cell, const Access &now)
{
    if (cell.barrier)
        stop("%s%s touches shared address %u, where an mbarrier is", now.what, site_text(now.site).c_str(), SHARED_BASE + offset);
    const bool both_atomic = cell.atomic && now.atomic;
    const bool product = now.agent >= agents.products && now.agent < agents.barriers;
    if (!cell.write.time && !now.write)
        return note_unwritten(offset, now);
    const Event *write = cell.write.time ? ordered_write(cell, now.clock->known) : &cell.write;
    if (!write && !both_atomic) {
        const std::string text = race_text(offset, cell.write, true, now);
        /* A kernel may multiply what a copy or another thread is about to overwrite, for nobody. */
        if (product) {
            product_torn({now.agent - agents.products, now.time, cell.write.site}, text);
            return;
        }
        if (!now.write || now.async || cell.async || cell.write.agent >= agents.copies || now.agent >= agents.copies)
            stop("%s", text.c_str());
        doubt_add(shared_bytes_of(Place{rank, offset}), span, text);
    }
    const Event &before = write ? *write : cell.write;
    if (now.async && before.time && !cell.async && before.time > now.clock->fenced[(size_t)before.agent])
        stop("%s %s shared address %u, which %s%s wrote by %s, without a proxy fence between them (%s%s)", now.what,
             now.write ? "overwrites" : "reads", SHARED_BASE + offset, thread_text(before.thread).c_str(),
             site_text(before.site).c_str(), before.what, thread_text(now.thread).c_str(), site_text(now.site).c_str());
    if (now.write)
        check_reads(rank, offset, span, cell, now);
}

/* Stores of the same value by several threads count, each for those that are behind it. */
static void note_writer(Cell &cell, const Access &now)
{
    const bool ordered = !cell.write.time || cell.write.time <= now.clock->known[(size_t)cell.write.agent];
    if (ordered || now.async || now.agent >= agents.copies) {
        if (cell.writers)
            free_lists.push_back(cell.writers);
        cell.writers = 0;
        return;
    }
    if (!cell.writers) {
        cell.writers = list_new();
        lists[cell.writers].events.clear();
    }
    lists[cell.writers].events.push_back(cell.write);
}

/* Reads that happen before another one need not be remembered: who is behind that one is behind them. Nor does one that its agent
 * repeats. */
static void forget_reads(Reads &list, const std::vector<Time> &known)
{
    size_t kept = 0;
    for (size_t i = 0; i < list.events.size(); i++) {
        const Event read = list.events[i];
        bool again = read.time <= known[(size_t)read.agent];
        for (size_t n = i + 1; n < list.events.size() && !again; n++)
            again = list.events[n].agent == read.agent && list.events[n].time >= read.time;
        if (!again)
            list.events[kept++] = read;
    }
    list.events.resize(kept);
    list.full = std::max(FEW_READS, 2 * kept);
}

static void note_cell(Cell &cell, const Access &now)
{
    const Event event = {now.time, now.agent, now.thread, now.site, now.what};
    if (now.write) {
        note_writer(cell, now);
        cell.write = event;
        cell.async = now.async;
        cell.atomic = now.atomic;
        cell.read.time = 0;
        if (cell.reads)
            free_lists.push_back(cell.reads);
        cell.reads = 0;
        return;
    }
    const std::vector<Time> &known = now.clock->known;
    cell.atomic_read = now.atomic && (cell.atomic_read || (!cell.read.time && !cell.reads));
    if (!cell.reads && (!cell.read.time || cell.read.time <= known[(size_t)cell.read.agent])) {
        cell.read = event;
        return;
    }
    if (!cell.reads) {
        if (cell.read.time == event.time && cell.read.agent == event.agent)
            return;
        cell.reads = list_new();
        lists[cell.reads].events.assign(1, cell.read);
        lists[cell.reads].full = FEW_READS;
        cell.read.time = 0;
    }
    Reads &list = lists[cell.reads];
    if (list.events.back().time == event.time && list.events.back().agent == event.agent)
        return;
    if (list.events.size() >= list.full)
        forget_reads(list, known);
    list.events.push_back(event);
}

static uint32_t reads_copied(uint32_t reads)
{
    if (!reads)
        return 0;
    const uint32_t made = list_new(); /* which may move the lists */
    lists[made].events = lists[reads].events;
    lists[made].full = lists[reads].full;
    return made;
}

/* Cells of at most `grain` bytes. */
static void split(Chunk &chunk, uint32_t grain)
{
    if (!chunk.parts) {
        if (free_parts.empty()) {
            if (parts.empty())
                parts.resize(CHUNK);
            free_parts.push_back((uint32_t)(parts.size() / CHUNK));
            parts.resize(parts.size() + CHUNK);
        }
        chunk.parts = free_parts.back();
        free_parts.pop_back();
        chunk.grain = CHUNK;
        parts[chunk.parts * CHUNK] = chunk.whole;
    }
    if (chunk.grain <= grain)
        return;
    Cell *cells = &parts[chunk.parts * CHUNK];
    for (uint32_t from = 0; from < CHUNK; from += chunk.grain)
        for (uint32_t to = from + grain; to < from + chunk.grain; to += grain) {
            cells[to] = cells[from];
            cells[to].reads = reads_copied(cells[from].reads);
            cells[to].writers = reads_copied(cells[from].writers);
        }
    chunk.grain = grain;
}

void shared_access(int rank, uint32_t offset, uint32_t bytes, const Access &access)
{
    memory.accesses++;
    for (uint32_t at = offset; at < offset + bytes;) {
        Chunk &chunk = chunks[rank][at / CHUNK];
        const uint32_t end = std::min(offset + bytes, (at / CHUNK + 1) * CHUNK);
        const bool whole = at % CHUNK == 0 && end - at == CHUNK;
        if (!chunk.parts && whole) {
            check_cell(rank, at, CHUNK, chunk.whole, access);
            note_cell(chunk.whole, access);
        } else {
            split(chunk, (at | end) & -(at | end));
            for (uint32_t byte = at; byte < end; byte += chunk.grain) {
                Cell &cell = parts[chunk.parts * CHUNK + byte % CHUNK];
                check_cell(rank, byte, chunk.grain, cell, access);
                note_cell(cell, access);
            }
            if (whole && access.write) { /* it is one again */
                chunk.whole = parts[chunk.parts * CHUNK];
                free_parts.push_back(chunk.parts);
                chunk.parts = 0;
            }
        }
        at = end;
    }
}

void shared_mark_barrier(int rank, uint32_t offset, bool set)
{
    Chunk &chunk = chunks[rank][offset / CHUNK];
    split(chunk, 8);
    for (uint32_t byte = offset; byte < offset + 8; byte += chunk.grain)
        parts[chunk.parts * CHUNK + byte % CHUNK].barrier = set;
}
} // namespace emulation
