/*
 * clocks.cpp - what happens before what, for shared memory.
 *
 * Every byte of shared memory has the last write and the reads since, each as (agent, time). An access is a race unless the clock of
 * the one who begins it is ahead of all that it conflicts with: barriers, mbarriers and waits are what moves clocks (release,
 * acquire). So a race is seen whatever order the threads ran in. Bytes are kept in chunks of 16 as long as they are all accessed
 * alike, which copies and products do.
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

static void join_times(std::vector<Time> &own, const std::vector<Time> &other)
{
    if (own.size() < other.size())
        own.resize(other.size());
    Time *to = own.data();
    const Time *from = other.data();
    for (size_t i = 0, count = other.size(); i < count; i++)
        to[i] = to[i] > from[i] ? to[i] : from[i];
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
    int16_t thread;
    uint16_t what;
    int32_t agent;
    Site site;
};

struct Cell {
    Event write, read; /* the only read, or */
    uint32_t reads;    /* a list of them */
    bool async, atomic, barrier, atomic_read;
};

struct Chunk {
    Cell whole;
    uint32_t parts; /* sixteen cells, if they differ */
};

constexpr uint32_t CHUNK = 16;
static std::vector<Chunk> chunks[MOST_BLOCKS];
static std::vector<Cell> parts;
static std::vector<std::vector<Event>> lists;
static std::vector<uint32_t> free_lists, free_parts;
static std::vector<const char *> words;

static uint16_t word_of(const char *what)
{
    for (size_t i = 0; i < words.size(); i++)
        if (words[i] == what)
            return (uint16_t)i;
    words.push_back(what);
    return (uint16_t)(words.size() - 1);
}

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
    lists.assign(1, {});
    free_lists.clear();
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
             SHARED_BASE + offset, now.what, thread_text(now.thread).c_str(), site_text(now.site).c_str(), words[before.what],
             wrote ? "wrote" : "read", thread_text(before.thread).c_str(), site_text(before.site).c_str());
    return text;
}

/* A write over what a wgmma reads. */
static void overwrite(uint32_t offset, const Event &read, const Access &now)
{
    if (now.agent < agents.copies) /* as above: other values show in the result, because products are computed late */
        return;
    product_torn(read.agent - agents.products, read.time, race_text(offset, read, false, now));
}

[[noreturn]] static void race(uint32_t offset, const Event &before, bool wrote, const Access &now)
{
    stop("%s", race_text(offset, before, wrote, now).c_str());
}

/* A kernel may read more than it uses; what was in shared memory before is other rubbish in every order, so that it shows if it is
 * used. */
static void note_unwritten(uint32_t offset, const Access &now)
{
    static int said;
    if (said++ < 4)
        fprintf(stderr, "torn: %s reads shared address %u, which nothing was written to (%s%s) [%s]\n", now.what,
                SHARED_BASE + offset, thread_text(now.thread).c_str(), site_text(now.site).c_str(), image->path);
}

static void check_cell(int rank, uint32_t offset, uint32_t span, Cell &cell, const Access &now)
{
    const std::vector<Time> &known = now.clock->known;
    if (cell.barrier)
        stop("%s%s touches shared address %u, where an mbarrier is", now.what, site_text(now.site).c_str(), SHARED_BASE + offset);
    const Event &write = cell.write;
    const bool both_atomic = cell.atomic && now.atomic;
    const bool product = now.agent >= agents.products && now.agent < agents.barriers;
    if (!write.time && !now.write && product)
        return product_torn(now.agent - agents.products, now.time, "a wgmma reads shared memory that nothing was written to");
    if (!write.time && !now.write)
        return note_unwritten(offset, now);
    if (write.time > known[(size_t)write.agent] && !both_atomic) {
        /* Warpgroups may each clear the same rows and then multiply them: the stores are all the same. */
        if (product && write.agent < agents.copies)
            return;
        if (product)
            return product_torn(now.agent - agents.products, now.time, race_text(offset, write, true, now));
        if (!now.write || now.async || cell.async || write.agent >= agents.copies || now.agent >= agents.copies)
            race(offset, write, true, now);
        doubt_add(shared_bytes_of(Place{rank, offset}), span, race_text(offset, write, true, now));
    }
    if (now.async && write.time && !cell.async && write.time > now.clock->fenced[(size_t)write.agent])
        stop("%s %s shared address %u, which %s%s wrote by %s, without a proxy fence between them (%s%s)", now.what,
             now.write ? "overwrites" : "reads", SHARED_BASE + offset, thread_text(write.thread).c_str(),
             site_text(write.site).c_str(), words[write.what], thread_text(now.thread).c_str(), site_text(now.site).c_str());
    if (!now.write)
        return;
    if (cell.reads) {
        for (const Event &read : lists[cell.reads])
            if (read.time > known[(size_t)read.agent] && !(cell.atomic_read && now.atomic)) {
                if (!is_product(read))
                    race(offset, read, false, now);
                overwrite(offset, read, now);
            }
    } else if (cell.read.time > known[(size_t)cell.read.agent] && !(cell.atomic_read && now.atomic)) {
        if (!is_product(cell.read))
            race(offset, cell.read, false, now);
        overwrite(offset, cell.read, now);
    }
}

static void note_cell(Cell &cell, const Access &now)
{
    const Event event = {now.time, (int16_t)now.thread, word_of(now.what), now.agent, now.site};
    if (now.write) {
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
        cell.reads = list_new();
        lists[cell.reads].assign(1, cell.read);
        cell.read.time = 0;
    }
    /* Reads that happen before this one need not be remembered: who is behind this one is behind them. */
    std::vector<Event> &list = lists[cell.reads];
    size_t kept = 0;
    for (const Event &read : list)
        if (read.time > known[(size_t)read.agent])
            list[kept++] = read;
    list.resize(kept);
    list.push_back(event);
}

static void split(Chunk &chunk)
{
    if (chunk.parts)
        return;
    if (free_parts.empty()) {
        if (parts.empty())
            parts.resize(CHUNK);
        free_parts.push_back((uint32_t)(parts.size() / CHUNK));
        parts.resize(parts.size() + CHUNK);
    }
    chunk.parts = free_parts.back();
    free_parts.pop_back();
    for (uint32_t i = 0; i < CHUNK; i++) {
        Cell &part = parts[chunk.parts * CHUNK + i] = chunk.whole;
        if (part.reads && i) {
            std::vector<Event> copy = lists[part.reads];
            part.reads = list_new();
            lists[part.reads] = copy;
        }
    }
}

void shared_access(int rank, uint32_t offset, uint32_t bytes, const Access &access)
{
    memory.accesses++;
    for (uint32_t at = offset; at < offset + bytes;) {
        Chunk &chunk = chunks[rank][at / CHUNK];
        uint32_t end = std::min(offset + bytes, (at / CHUNK + 1) * CHUNK);
        if (!chunk.parts && at % CHUNK == 0 && end - at == CHUNK) {
            check_cell(rank, at, CHUNK, chunk.whole, access);
            note_cell(chunk.whole, access);
        } else {
            split(chunk);
            /* A chunk that is written as a whole is one again. */
            const bool whole = at % CHUNK == 0 && end - at == CHUNK && access.write;
            for (uint32_t byte = at; byte < end; byte++) {
                Cell &cell = parts[chunk.parts * CHUNK + byte % CHUNK];
                check_cell(rank, byte, 1, cell, access);
                note_cell(cell, access);
            }
            if (whole) {
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
    split(chunk);
    for (uint32_t byte = offset; byte < offset + 8; byte++)
        parts[chunk.parts * CHUNK + byte % CHUNK].barrier = set;
}

bool shared_is_written(int rank, uint32_t offset, uint32_t bytes)
{
    for (uint32_t at = offset; at < offset + bytes; at++) {
        const Chunk &chunk = chunks[rank][at / CHUNK];
        if (!(chunk.parts ? parts[chunk.parts * CHUNK + at % CHUNK] : chunk.whole).write.time)
            return false;
    }
    return true;
}
} // namespace emulation
