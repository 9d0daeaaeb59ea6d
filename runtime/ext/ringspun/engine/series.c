#include "series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

rs_series *rs_series_open(rs_machine *machine, const rs_request *request, uint32_t ahead) {
    rs_series *series = rs_alloc(sizeof(*series));
    *series = (rs_series){.next = machine->series, .request = *request, .ahead = ahead,
                          .generation = rs_descriptor_generation(&machine->descriptors, request->fd)};
    if (series->next) series->next->previous = series;
    machine->series = series;
    machine->series_len++;
    return series;
}

static void free_series(rs_machine *machine, rs_series *series) {
    RS_ASSERT(!series->op);
    if (series->next) series->next->previous = series->previous;
    if (series->previous) series->previous->next = series->next;
    else machine->series = series->next;
    machine->series_len--;
    free(series->results);
    free(series);
}

int64_t rs_series_take(rs_series *series) {
    if (series->len > 0) {
        series->len--;
        return series->results[series->first++];
    }
    series->first = 0;
    int64_t error = series->error;
    series->error = 0;
    return error ? error : -EAGAIN;
}

void rs_series_arm(rs_machine *machine, rs_series *series) {
    if (series->op) return;
    rs_op *op = rs_op_take(&machine->ops, &series->request);
    RS_ASSERT(op != NULL);
    op->series = series;
    series->op = rs_op_id(op);
    rs_op_launch(machine, op);
}

static rs_op *op_of(rs_machine *machine, const rs_series *series) { return rs_op_find(&machine->ops, series->op); }

bool rs_series_stop(rs_machine *machine, rs_series *series) {
    if (!series->op) return false;
    rs_op *op = op_of(machine, series);
    if (op->cancel == RS_WAKE_VALUE && !op->closing) {
        op->cancel = RS_WAKE_CANCEL;
        machine->backend->cancel(machine, op);
    }
    return series->op != 0;
}

static void drop_results(rs_machine *machine, rs_series *series) {
    while (series->len > 0) {
        int fd = (int)rs_series_take(series);
        rs_descriptor_forget(&machine->descriptors, fd);
        close(fd);
    }
}

void rs_series_close(rs_machine *machine, rs_series *series) {
    series->left = true;
    if (series->len == 0) free_series(machine, series);
    else if (rs_descriptor_generation(&machine->descriptors, series->request.fd) != series->generation) {
        drop_results(machine, series);
        free_series(machine, series);
    }
}

static bool is_of(const rs_machine *machine, const rs_series *series, int fd) {
    return series->request.fd == fd && rs_descriptor_generation(&machine->descriptors, fd) == series->generation;
}

int64_t rs_series_take_any(rs_machine *machine, int fd) {
    for (rs_series *series = machine->series; series; series = series->next) {
        if (series->len == 0 || !is_of(machine, series, fd)) continue;
        int64_t result = rs_series_take(series);
        if (series->left && series->len == 0) free_series(machine, series);
        return result;
    }
    return -EAGAIN;
}

bool rs_series_has(const rs_machine *machine, int fd) {
    for (const rs_series *series = machine->series; series; series = series->next) {
        if (series->len > 0 && is_of(machine, series, fd)) return true;
    }
    return false;
}

void rs_series_drop(rs_machine *machine, int fd) {
    for (rs_series *series = machine->series, *next; series; series = next) {
        next = series->next;
        if (series->request.fd != fd) continue;
        drop_results(machine, series);
        if (series->left) free_series(machine, series);
    }
}

static void make_room(rs_series *series) {
    if (series->first + series->len < series->capacity) return;
    if (series->len > 0) memmove(series->results, series->results + series->first, sizeof(int64_t) * series->len);
    series->first = 0;
    if (series->len < series->capacity) return;
    series->capacity = series->capacity ? series->capacity * 2 : 16;
    series->results = rs_realloc(series->results, sizeof(int64_t) * series->capacity);
}

void rs_series_put(rs_machine *machine, rs_series *series, int64_t result) {
    make_room(series);
    series->results[series->first + series->len++] = result;
    rs_descriptor_made(machine, &series->request, result);
    rs_list_wake_all(machine, &series->waiters, 0);
    if (series->len >= series->ahead) rs_series_stop(machine, series);
}

void rs_series_ended(rs_machine *machine, rs_op *op, int64_t result) {
    rs_series *series = op->series;
    series->op = 0;
    if (result < 0 && result != -ECANCELED) series->error = result;
    else if (op->closing) series->error = -EBADF;
    rs_list_wake_all(machine, &series->waiters, 0);
}

void rs_series_close_copies(rs_machine *machine) {
    for (rs_series *series = machine->series; series; series = series->next) {
        for (; series->len > 0; series->len--) close((int)series->results[series->first++]);
    }
}

void rs_series_forked(rs_machine *machine) {
    for (rs_series *series = machine->series, *next; series; series = next) {
        next = series->next;
        drop_results(machine, series);
        series->op = 0;
        series->waiters = (rs_list){0};
        if (series->left) free_series(machine, series);
    }
}

void rs_series_close_all(rs_machine *machine) {
    while (machine->series) {
        machine->series->op = 0;
        drop_results(machine, machine->series);
        free_series(machine, machine->series);
    }
}
