// The floor: what a hand-written native program needs for one query, with the algorithm of CROWN (CROWN), no SQL, no types, no batches,
// no Arrow. Vertices are below 2^31. Tables of a self-join are separate relations; an event is applied to one after the other.
//
// usage: floor {three_hop|three_hop_projected|star|revenue} FILE      FILE: int64 triples (op, src, dst), or six per event (OrderEvent)
// prints {"seconds", "deltas", "rows", "checksum"}: the time of a run that writes every delta row into a ring of 64 Ki rows, and, from a second,
// untimed run that sums the deltas up, the rows of the final result and their checksum (as in checksum.py).

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

using Vertex = int32_t;

struct Event {
    int64_t op, src, dst;
};

// Of customer (ck, seg), orders (ok, ck, od, sp) and lineitem (ok, ln, rv, sd).
struct OrderEvent {
    enum Table : int64_t { kCustomer, kOrders, kLineitem };
    int64_t op, table, columns[4];
};

// ---- containers ----------------------------------------------------------------------------------------------------------------------

// int64 -> int32 by linear probing with backward-shift deletion, at most 60 % full.
class FlatMap {
public:
    FlatMap() : keys_(1024, kEmpty), values_(1024) {}

    int32_t* find(int64_t key) {
        for (size_t slot = home(key);; slot = next(slot)) {
            if (keys_[slot] == key) return &values_[slot];
            if (keys_[slot] == kEmpty) return nullptr;
        }
    }

    // The value of `key`, which is `missing` if the key is new.
    int32_t& find_or_insert(int64_t key, int32_t missing) {
        if ((size_ + 1) * 10 > keys_.size() * 6) grow();
        for (size_t slot = home(key);; slot = next(slot)) {
            if (keys_[slot] == key) return values_[slot];
            if (keys_[slot] == kEmpty) {
                keys_[slot] = key;
                values_[slot] = missing;
                ++size_;
                return values_[slot];
            }
        }
    }

    void erase(int64_t key) {
        size_t hole = home(key);
        while (keys_[hole] != key) {
            if (keys_[hole] == kEmpty) return;
            hole = next(hole);
        }
        for (size_t slot = next(hole); keys_[slot] != kEmpty; slot = next(slot)) {
            if (distance(home(keys_[slot]), slot) >= distance(hole, slot)) {
                keys_[hole] = keys_[slot];
                values_[hole] = values_[slot];
                hole = slot;
            }
        }
        keys_[hole] = kEmpty;
        --size_;
    }

private:
    static constexpr int64_t kEmpty = INT64_MIN;

    size_t mask() const { return keys_.size() - 1; }
    size_t next(size_t slot) const { return (slot + 1) & mask(); }
    size_t distance(size_t from, size_t to) const { return (to - from) & mask(); }
    size_t home(int64_t key) const {
        uint64_t h = static_cast<uint64_t>(key);
        h ^= h >> 32;
        h *= 0x9E3779B97F4A7C15u;
        h ^= h >> 29;
        return h & mask();
    }

    void grow() {
        std::vector<int64_t> keys(keys_.size() * 2, kEmpty);
        std::vector<int32_t> values(keys.size());
        keys.swap(keys_);
        values.swap(values_);
        size_ = 0;
        for (size_t slot = 0; slot < keys.size(); ++slot)
            if (keys[slot] != kEmpty) find_or_insert(keys[slot], values[slot]);
    }

    std::vector<int64_t> keys_;
    std::vector<int32_t> values_;
    size_t size_ = 0;
};

// Vertex -> set of vertices, each a contiguous list; removal swaps with the last through a table of positions.
class Index {
public:
    using List = std::vector<Vertex>;

    const List& at(Vertex key) {
        const int32_t* list = lists_of_.find(key);
        return list ? lists_[*list] : kNone;
    }

    bool has(Vertex key) { return !at(key).empty(); }

    // Adds a member that may be there; true if the key had none.
    bool add(Vertex key, Vertex member) {
        int32_t& list = lists_of_.find_or_insert(key, -1);
        if (list < 0) {
            list = static_cast<int32_t>(lists_.size());
            lists_.emplace_back();
        }
        List& members = lists_[list];
        int32_t& position = positions_.find_or_insert(pair(key, member), -1);
        if (position >= 0) return false;
        position = static_cast<int32_t>(members.size());
        members.push_back(member);
        return members.size() == 1;
    }

    // Removes a member that may be absent; true if the key has none left.
    bool remove(Vertex key, Vertex member) {
        const int32_t* list = lists_of_.find(key);
        const int32_t* position = positions_.find(pair(key, member));
        if (!list || !position) return false;
        List& members = lists_[*list];
        const Vertex last = members.back();
        members[*position] = last;
        members.pop_back();
        if (last != member) *positions_.find(pair(key, last)) = *position;
        positions_.erase(pair(key, member));
        return members.empty();
    }

private:
    static int64_t pair(Vertex a, Vertex b) { return (static_cast<int64_t>(a) << 32) | b; }

    inline static const List kNone;
    FlatMap lists_of_, positions_;
    std::vector<List> lists_;
};

// ---- where deltas go -----------------------------------------------------------------------------------------------------------------

// Writes the rows into a ring, as a consumer would read them. Rows without room for their sign have that of their event.
template <typename Row>
struct Ring {
    static constexpr uint64_t kRows = 1 << 16;

    template <typename... Values>
    void operator()([[maybe_unused]] int op, Values... values) {
        Row& row = rows[count++ % kRows];
        if constexpr (sizeof...(values) == std::tuple_size_v<Row>)
            row = {values...};
        else
            row = {op, values...};
    }
    uint64_t count = 0;
    std::vector<Row> rows = std::vector<Row>(kRows);
};

// Sums the rows up.
struct Checksum {
    template <typename... Values>
    void operator()(int op, Values... values) {
        uint64_t h = 0x243F6A8885A308D3u;
        ((h = (h ^ static_cast<uint64_t>(static_cast<int64_t>(values))) * 0x9E3779B97F4A7C15u, h ^= h >> 32), ...);
        rows += op;
        sum += static_cast<uint64_t>(op) * h;
    }
    int64_t rows = 0;
    uint64_t sum = 0;
};

// ---- queries -------------------------------------------------------------------------------------------------------------------------

// (a, b, c, d) of g(a, b), g(b, c), g(c, d) with d % 10 = 0; or, projected, DISTINCT (b, c).
template <bool kProjected, typename Sink>
class ThreeHop {
public:
    explicit ThreeHop(Sink& sink) : emit_(sink) {}

    void apply(const Event& event) {
        const Vertex src = static_cast<Vertex>(event.src), dst = static_cast<Vertex>(event.dst);
        if (event.op > 0) {
            insert_head(src, dst);
            insert_middle(src, dst);
            if (dst % 10 == 0) insert_tail(src, dst);
        } else {
            remove_head(src, dst);
            remove_middle(src, dst);
            if (dst % 10 == 0) remove_tail(src, dst);
        }
    }

private:
    void insert_head(Vertex a, Vertex b) {
        emit_with_head(1, a, b);
        if (heads_.add(b, a)) {
            for (Vertex c : middle_.at(b)) {
                backward_.add(c, b);
                if (kProjected && tails_.has(c)) emit_(1, b, c);
            }
        }
    }

    void remove_head(Vertex a, Vertex b) {
        if (heads_.remove(b, a)) {
            for (Vertex c : middle_.at(b)) {
                backward_.remove(c, b);
                if (kProjected && tails_.has(c)) emit_(-1, b, c);
            }
        }
        emit_with_head(-1, a, b);
    }

    void insert_middle(Vertex b, Vertex c) {
        middle_.add(b, c);
        middle_back_.add(c, b);
        if (heads_.has(b)) backward_.add(c, b);
        if (tails_.has(c)) onward_.add(b, c);
        emit_with_middle(1, b, c);
    }

    void remove_middle(Vertex b, Vertex c) {
        middle_.remove(b, c);
        middle_back_.remove(c, b);
        if (heads_.has(b)) backward_.remove(c, b);
        if (tails_.has(c)) onward_.remove(b, c);
        emit_with_middle(-1, b, c);
    }

    void insert_tail(Vertex c, Vertex d) {
        emit_with_tail(1, c, d);
        if (tails_.add(c, d)) {
            for (Vertex b : middle_back_.at(c)) {
                onward_.add(b, c);
                if (kProjected && heads_.has(b)) emit_(1, b, c);
            }
        }
    }

    void remove_tail(Vertex c, Vertex d) {
        if (tails_.remove(c, d)) {
            for (Vertex b : middle_back_.at(c)) {
                onward_.remove(b, c);
                if (kProjected && heads_.has(b)) emit_(-1, b, c);
            }
        }
        emit_with_tail(-1, c, d);
    }

    void emit_with_head(int op, Vertex a, Vertex b) {
        if constexpr (!kProjected)
            for (Vertex c : onward_.at(b))
                for (Vertex d : tails_.at(c)) emit_(op, a, b, c, d);
    }

    void emit_with_middle(int op, Vertex b, Vertex c) {
        if constexpr (kProjected) {
            if (heads_.has(b) && tails_.has(c)) emit_(op, b, c);
        } else {
            for (Vertex a : heads_.at(b))
                for (Vertex d : tails_.at(c)) emit_(op, a, b, c, d);
        }
    }

    void emit_with_tail(int op, Vertex c, Vertex d) {
        if constexpr (!kProjected)
            for (Vertex b : backward_.at(c))
                for (Vertex a : heads_.at(b)) emit_(op, a, b, c, d);
    }

    Sink& emit_;
    Index heads_, middle_, middle_back_, tails_;  // b: {a}; b: {c}; c: {b}; c: {d}
    Index onward_, backward_;                     // b: {c} with a tail; c: {b} with a head
};

// (src, count) of the 4-way self-join on src.
template <typename Sink>
class Star {
public:
    explicit Star(Sink& sink) : emit_(sink) {}

    void apply(const Event& event) {
        int32_t& slot = slots_.find_or_insert(event.src, -1);
        if (slot < 0) {
            slot = static_cast<int32_t>(groups_.size());
            groups_.emplace_back();
        }
        Group& group = groups_[slot];
        for (size_t relation = 0; relation < 4; ++relation) {
            int64_t combinations = 1;
            for (size_t other = 0; other < 4; ++other)
                if (other != relation) combinations *= group.degree[other];
            group.degree[relation] += event.op;
            if (combinations == 0) continue;
            if (group.count != 0) emit_(-1, event.src, group.count);
            group.count += event.op * combinations;
            if (group.count != 0) emit_(1, event.src, group.count);
        }
    }

private:
    struct Group {
        std::array<int64_t, 4> degree{};
        int64_t count = 0;
    };

    Sink& emit_;
    FlatMap slots_;
    std::vector<Group> groups_;
};

// (ok, od, sp, SUM(rv)) of customer, orders and lineitem with seg = 0, od < 9204 and sd > 9204. An order knows the sum of its lines, a customer
// the list of its orders.
template <typename Sink>
class Revenue {
public:
    explicit Revenue(Sink& sink) : emit_(sink) {}

    void apply(const OrderEvent& event) {
        const int64_t* column = event.columns;
        const int op = static_cast<int>(event.op);
        if (event.table == OrderEvent::kCustomer) {
            if (column[1] == 0) change_customer(op, column[0]);
        } else if (event.table == OrderEvent::kOrders) {
            if (column[2] < kDay) change_order(op, column);
        } else if (column[3] > kDay) {
            change_lines(op, column[0], column[2]);
        }
    }

private:
    static constexpr int64_t kDay = 9204;

    struct Customer {
        bool chosen = false;
        int32_t first = -1;
    };
    struct Order {
        int64_t key = 0, date = 0, priority = 0, lines = 0, revenue = 0;
        int32_t customer = -1, previous = -1, next = -1;
    };

    void change_customer(int op, int64_t key) {
        Customer& customer = customers_[customer_slot(key)];
        for (int32_t slot = customer.first; slot >= 0; slot = orders_[slot].next)
            if (orders_[slot].lines) emit(op, orders_[slot]);
        customer.chosen = op > 0;
    }

    void change_order(int op, const int64_t* column) {
        const int32_t slot = order_slot(column[0]);
        Order& order = orders_[slot];
        if (op > 0) {
            order.date = column[2];
            order.priority = column[3];
            order.customer = customer_slot(column[1]);
            Customer& customer = customers_[order.customer];
            order.previous = -1;
            order.next = customer.first;
            if (order.next >= 0) orders_[order.next].previous = slot;
            customer.first = slot;
        }
        if (visible(order)) emit(op, order);
        if (op < 0) {
            (order.previous >= 0 ? orders_[order.previous].next : customers_[order.customer].first) = order.next;
            if (order.next >= 0) orders_[order.next].previous = order.previous;
            order.customer = -1;
            release_if_empty(slot);
        }
    }

    void change_lines(int op, int64_t key, int64_t revenue) {
        const int32_t slot = order_slot(key);
        Order& order = orders_[slot];
        if (visible(order)) emit(-1, order);
        order.lines += op;
        order.revenue += op * revenue;
        if (visible(order)) emit(1, order);
        release_if_empty(slot);
    }

    bool visible(const Order& order) const {
        return order.lines && order.customer >= 0 && customers_[order.customer].chosen;
    }

    void emit(int op, const Order& order) { emit_(op, order.key, order.date, order.priority, order.revenue); }

    int32_t customer_slot(int64_t key) {
        int32_t& slot = customer_slots_.find_or_insert(key, -1);
        if (slot < 0) {
            slot = static_cast<int32_t>(customers_.size());
            customers_.emplace_back();
        }
        return slot;
    }

    int32_t order_slot(int64_t key) {
        int32_t& slot = order_slots_.find_or_insert(key, -1);
        if (slot < 0) {
            if (free_.empty()) {
                free_.push_back(static_cast<int32_t>(orders_.size()));
                orders_.emplace_back();
            }
            slot = free_.back();
            free_.pop_back();
            orders_[slot].key = key;
        }
        return slot;
    }

    void release_if_empty(int32_t slot) {
        if (orders_[slot].lines || orders_[slot].customer >= 0) return;
        order_slots_.erase(orders_[slot].key);
        free_.push_back(slot);
    }

    Sink& emit_;
    FlatMap customer_slots_, order_slots_;
    std::vector<Customer> customers_;
    std::vector<Order> orders_;
    std::vector<int32_t> free_;
};

template <typename Sink>
using FullThreeHop = ThreeHop<false, Sink>;
template <typename Sink>
using ProjectedThreeHop = ThreeHop<true, Sink>;

// ---- running -------------------------------------------------------------------------------------------------------------------------

template <typename Event>
static std::vector<Event> read_events(const char* path) {
    std::FILE* file = std::fopen(path, "rb");
    if (!file) {
        std::perror(path);
        std::exit(1);
    }
    std::vector<Event> events;
    Event event;
    while (std::fread(&event, sizeof event, 1, file) == 1) events.push_back(event);
    std::fclose(file);
    return events;
}

template <template <typename> class Query, typename Event, typename Sink>
static double seconds_of(const std::vector<Event>& events, Sink& sink) {
    const auto start = std::chrono::steady_clock::now();
    Query<Sink> query(sink);
    for (const Event& event : events) query.apply(event);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <template <typename> class Query, typename Row, typename Event = ::Event>
static int run(const char* path) {
    const std::vector<Event> events = read_events<Event>(path);
    Ring<Row> ring;
    const double seconds = seconds_of<Query>(events, ring);
    Checksum checksum;
    seconds_of<Query>(events, checksum);
    std::printf("{\"seconds\": %.6f, \"deltas\": %llu, \"rows\": %lld, \"checksum\": %llu}\n", seconds,
                static_cast<unsigned long long>(ring.count), static_cast<long long>(checksum.rows),
                static_cast<unsigned long long>(checksum.sum));
    return 0;
}

int main(int argc, char** argv) {
    if (argc == 3) {
        const std::string_view query = argv[1];
        if (query == "three_hop") return run<FullThreeHop, std::array<Vertex, 4>>(argv[2]);
        if (query == "three_hop_projected") return run<ProjectedThreeHop, std::array<Vertex, 2>>(argv[2]);
        if (query == "star") return run<Star, std::array<int64_t, 3>>(argv[2]);
        if (query == "revenue") return run<Revenue, std::array<int64_t, 5>, OrderEvent>(argv[2]);
    }
    std::fprintf(stderr, "usage: %s {three_hop|three_hop_projected|star|revenue} FILE\n", argv[0]);
    return 2;
}
