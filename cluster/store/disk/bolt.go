// SPDX-License-Identifier: Apache-2.0

//go:build !wasip1

package disk

import (
	"encoding/binary"
	"errors"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"
)

// The file is the one that hashicorp/raft-boltdb v2 makes, and each can go on with what the other wrote: a bucket of entries in MessagePack
// by index (8 bytes, big-endian), and one of the few values that elections depend on.
var (
	bucketLogs = []byte("logs")
	bucketConf = []byte("conf")
)

// errNoValue is what the library compares the text of (store.NotFound).
var errNoValue = errors.New("not found")

// bbolt writes the page that it appends to anew each time, with all that is in it, and a page has two keys at least and up to four however
// large their values are. Behind a large entry the next ones, small or large, would each write it again: 684 KB for 300 bytes behind entries of
// 337 KB, and four times itself for one of those. Keys without a value behind it end its page. They begin with its index, so that whoever
// looks for the first or the last entry, or deletes a range, takes them for a part of it, raft-boltdb as well; nobody looks for them.
const pageEnds = 4

// boltLog keeps the log and the stable store in a bbolt file. Panics of bbolt are for who calls it.
type boltLog struct{ db *bbolt.DB }

// openBolt opens a file, and makes it if there is none.
func openBolt(path string, o *bbolt.Options) (*boltLog, error) {
	db, err := bbolt.Open(path, 0o600, o)
	if err != nil {
		return nil, err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		_, logs := tx.CreateBucketIfNotExists(bucketLogs)
		_, conf := tx.CreateBucketIfNotExists(bucketConf)
		return errors.Join(logs, conf)
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &boltLog{db: db}, nil
}

func (b *boltLog) FirstIndex() (uint64, error) { return b.end((*bbolt.Cursor).First) }

func (b *boltLog) LastIndex() (uint64, error) { return b.end((*bbolt.Cursor).Last) }

// end is the index at an end of the log, 0 if it is empty.
func (b *boltLog) end(of func(*bbolt.Cursor) (key, value []byte)) (index uint64, err error) {
	err = b.db.View(func(tx *bbolt.Tx) error {
		if key, _ := of(tx.Bucket(bucketLogs).Cursor()); key != nil {
			index = binary.BigEndian.Uint64(key)
		}
		return nil
	})
	return index, err
}

func (b *boltLog) GetLog(index uint64, l *raft.Log) error {
	return b.db.View(func(tx *bbolt.Tx) error {
		value := tx.Bucket(bucketLogs).Get(keyOf(index))
		if value == nil {
			return raft.ErrLogNotFound
		}
		return codec.NewDecoderBytes(value, &codec.MsgpackHandle{}).Decode(l)
	})
}

// EntryBytes looks at no page of a large entry but the first.
func (b *boltLog) EntryBytes(index uint64) (bytes uint64, err error) {
	err = b.db.View(func(tx *bbolt.Tx) error {
		value := tx.Bucket(bucketLogs).Get(keyOf(index))
		if value == nil {
			return raft.ErrLogNotFound
		}
		bytes = uint64(len(value))
		return nil
	})
	return bytes, err
}

// StoreLogs stores entries, all of them or none.
func (b *boltLog) StoreLogs(logs []*raft.Log) error {
	return b.db.Update(func(tx *bbolt.Tx) error {
		bucket, large := tx.Bucket(bucketLogs), false
		for _, l := range logs {
			value, err := encode(l)
			if err == nil {
				err = bucket.Put(keyOf(l.Index), value)
			}
			if err != nil {
				return err
			}
			large = large || len(value) > b.db.Info().PageSize
		}
		for end := range pageEnds {
			if !large {
				break
			}
			if err := bucket.Put(append(keyOf(logs[len(logs)-1].Index), byte(end)), nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// DeleteRange deletes entries, all of them or none.
func (b *boltLog) DeleteRange(first, last uint64) error {
	return b.db.Update(func(tx *bbolt.Tx) error {
		cursor := tx.Bucket(bucketLogs).Cursor()
		for {
			key, _ := cursor.Seek(keyOf(first)) // anew: what a cursor points at after it deleted something is not said
			if key == nil || binary.BigEndian.Uint64(key) > last {
				return nil
			}
			if err := cursor.Delete(); err != nil {
				return err
			}
		}
	})
}

func (b *boltLog) Set(key, value []byte) error {
	return b.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucketConf).Put(key, value) })
}

func (b *boltLog) Get(key []byte) (value []byte, err error) {
	err = b.db.View(func(tx *bbolt.Tx) error {
		kept := tx.Bucket(bucketConf).Get(key)
		if kept == nil {
			return errNoValue
		}
		value = append([]byte{}, kept...) // the page is only there as long as the transaction
		return nil
	})
	return value, err
}

func keyOf(index uint64) []byte { return binary.BigEndian.AppendUint64(make([]byte, 0, 9), index) }

// encode gives an entry as raft-boltdb writes it: times as they encode themselves.
func encode(l *raft.Log) (value []byte, err error) {
	handle := &codec.MsgpackHandle{}
	handle.TimeNotBuiltin = true
	err = codec.NewEncoderBytes(&value, handle).Encode(l)
	return value, err
}
